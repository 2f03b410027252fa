// What an app's developer sees: each step and each failure with its cause, told to one function of the app's. Never a value of a record,
// a report's id, a token or a payload: what other code throws is told by its type alone.
package org.example.ldpbayes

import java.io.IOException
import java.net.ConnectException
import java.net.SocketException
import java.net.SocketTimeoutException
import java.net.UnknownHostException
import javax.net.ssl.SSLException

/**
 * [name] is what was done: a request (`document`, `state`, `model`, `directory`, `upload`), a call (`next-step`, `decide`, `grant`,
 * `contribute`, `withdraw`, `classifier`) or `delivery`. [code] is that of the failure, of a next step what it says; null where all is
 * well. [cause] begins with its kind: `dns`, `tls`, `timeout`, `refused`, `reset`, `cookies`, `document`, or the type of an error.
 * [time] is in milliseconds since 1970; [campaignId] is empty where a step is about none, or it is not known.
 */
class Step internal constructor(val time: Long, val campaignId: String, val name: String, val code: String?, val cause: String?) {
    override fun toString(): String = "$name: $code ($cause) $campaignId"
}

/** An app's log, such as `Log { println(it) }`. What it throws troubles nobody. */
fun interface Log {
    /** Takes note of one step. */
    fun take(step: Step)
}

/** The process has a `CookieHandler`, whose cookies would go along. */
internal class CookiesException : IOException("the process has a CookieHandler; bring a Transport of your own")

/** Tells an app's [log]; null tells nobody. */
internal class Teller(private val log: Log?, private val now: () -> Long) {
    fun tell(name: String, campaignId: String, code: String?, error: Throwable? = null) {
        if (log != null) {
            try {
                log.take(Step(now(), campaignId, name, code, error?.let(::causeOf)))
            } catch (error: Exception) {
                // the app's own trouble
            }
        }
    }

    /** Tells how [work] ends: by the code that [codeOf] finds in what it makes, or by that of what it throws. */
    inline fun <T> step(name: String, campaignId: String, codeOf: (T) -> String? = { null }, work: () -> T): T = try {
        work().also { tell(name, campaignId, codeOf(it)) }
    } catch (error: Exception) {
        tell(name, campaignId, codeOf(error), error)
        throw error
    }

    /** A transport whose every exchange is told of, where somebody listens. */
    fun listening(transport: Transport): Transport = if (log == null) {
        transport
    } else {
        Transport { request ->
            val (_, id, rest) = CAMPAIGN.find(request.url)?.groupValues ?: listOf("", "", "")
            val name = when {
                request.body != null -> "upload"
                "/v1/directories/" in request.url -> "directory"
                else -> rest.ifEmpty { "document" }
            }
            step(name, id, { answer -> if (answer.status == 200) null else reasonOf(answer) }) { transport.send(request) }
        }
    }

    companion object {
        private val CAMPAIGN = Regex("/v1/campaigns/([A-Za-z0-9_-]{43})/?(.*)")

        fun codeOf(error: Throwable): String = when {
            error is LdpException -> error.code
            error is IOException -> if (causeOf(error) == "timeout") "timeout" else "unreachable"
            else -> "unexpected"
        }

        /** Why, by the error that began it; null where the code says it all. */
        private fun causeOf(error: Throwable): String? {
            val chain = generateSequence(error) { it.cause }.take(LONGEST_CHAIN).toList()
            val first = chain.last()
            if (first is LdpException) {
                return when (first.code) {
                    INVALID_DOCUMENT -> "document: ${first.message}"
                    "timeout" -> "timeout"
                    else -> null
                }
            }
            val kind = chain.firstNotNullOfOrNull(::kindOf)
            return if (kind == "tls") "tls: ${first.javaClass.simpleName}" else kind ?: first.javaClass.simpleName
        }

        private fun kindOf(error: Throwable): String? = when (error) {
            is UnknownHostException -> "dns"
            is SSLException -> "tls"
            is SocketTimeoutException -> "timeout"
            is ConnectException -> "refused"
            is SocketException -> "reset"
            is CookiesException -> "cookies"
            else -> null
        }

        private const val LONGEST_CHAIN = 10
    }
}
