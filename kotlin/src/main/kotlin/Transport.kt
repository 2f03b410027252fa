package org.example.ldpbayes

import java.io.ByteArrayOutputStream
import java.io.IOException
import java.io.InputStream
import java.net.CookieHandler
import java.net.HttpURLConnection
import java.net.SocketTimeoutException
import java.net.URL
import java.util.concurrent.ExecutionException
import java.util.concurrent.FutureTask
import java.util.concurrent.TimeUnit
import java.util.concurrent.TimeoutException
import kotlin.time.Duration
import kotlin.time.Duration.Companion.nanoseconds

/** One request; a [body] makes it a POST. An answer longer than [longest] bytes is none. */
class Request(val url: String, val headers: Map<String, String>, val body: ByteArray?, val timeout: Duration, val longest: Int) {
    /** [timeout] in milliseconds. */
    val timeoutMillis: Long get() = timeout.inWholeMilliseconds
}

/** What a server said: its status, its headers by lower-case name, its body. */
class Answer(val status: Int, private val headers: Map<String, String>, val body: ByteArray) {
    internal fun header(name: String): String? = headers[name]
}

/**
 * Carries requests; an app may bring its own. It sends the headers of the request and what HTTP needs, no cookie and no name of the
 * device or of the app, follows no redirect, and keeps nothing.
 */
fun interface Transport {
    /** The answer, whatever its status. Throws [IOException] where there is none in time. */
    @Throws(IOException::class)
    fun send(request: Request): Answer
}

/** The platform's `HttpURLConnection`: a connection of its own for each request, through the proxies that the platform is set to. */
object UrlConnectionTransport : Transport {
    override fun send(request: Request): Answer {
        // Its cookies would go along, those of the app's own domain too, and they name the person.
        if (CookieHandler.getDefault() != null) throw CookiesException()
        val until = System.nanoTime() + request.timeout.inWholeNanoseconds
        val connection = URL(request.url).openConnection() as HttpURLConnection
        try {
            connection.connectTimeout = left(until)
            connection.readTimeout = left(until)
            connection.instanceFollowRedirects = false
            connection.useCaches = false
            for ((name, value) in FIXED + request.headers) connection.setRequestProperty(name, value)
            request.body?.let { body ->
                connection.doOutput = true
                connection.setFixedLengthStreamingMode(body.size) // the platform then tries nothing again by itself
                connection.outputStream.use { it.write(body) }
            }
            connection.readTimeout = left(until)
            val status = connection.responseCode
            val stream = if (status < 400) connection.inputStream else connection.errorStream
            val body = stream?.use { read(it, request.longest) { connection.readTimeout = left(until) } } ?: ByteArray(0)
            val headers = connection.headerFields.filterKeys { it != null }.map { (name, values) -> name.lowercase() to values.last() }
            return Answer(status, headers.toMap(), body)
        } finally {
            connection.disconnect()
        }
    }

    private inline fun read(stream: InputStream, longest: Int, beforeEach: () -> Unit): ByteArray {
        val whole = ByteArrayOutputStream()
        val part = ByteArray(1 shl 14)
        while (true) {
            beforeEach()
            val count = stream.read(part)
            if (count < 0) return whole.toByteArray()
            whole.write(part, 0, count)
            if (whole.size() > longest) throw IOException("the answer is too long")
        }
    }

    /** Milliseconds until then. */
    private fun left(until: Long): Int = ((until - System.nanoTime()) / 1_000_000).toInt().also {
        if (it <= 0) throw SocketTimeoutException("no answer in time")
    }

    /** What would otherwise name the platform, its version and the telephone. */
    private val FIXED = mapOf("User-Agent" to "ldp-bayes", "Accept" to "*/*", "Accept-Encoding" to "identity", "Connection" to "close")
}

/** The end of the time that a call may take, by a clock that nobody sets. */
internal class Deadline(timeout: Duration) {
    private val end = System.nanoTime() + timeout.inWholeNanoseconds
    fun left(): Duration = (end - System.nanoTime()).nanoseconds

    /** Throws [AwayException] `timeout` at the end. */
    fun check() {
        if (left() <= Duration.ZERO) throw AwayException("timeout")
    }
}

/**
 * What [work] makes within [timeout]. Throws what it throws, and [AwayException] `timeout`: names are looked up, and storages of an app
 * wait, for as long as they like.
 */
internal fun <T> inTime(timeout: Duration, work: (Deadline) -> T): T {
    val until = Deadline(timeout)
    val task = FutureTask { work(until) }
    kotlin.concurrent.thread(isDaemon = true, name = "ldp-bayes-call") { task.run() }
    try {
        return unlessInterrupted("cancelled") { task.get(until.left().inWholeNanoseconds, TimeUnit.NANOSECONDS) }
    } catch (error: TimeoutException) {
        throw AwayException("timeout")
    } catch (error: ExecutionException) {
        throw error.cause!!
    }
}

/** One aggregator, as the device asks it. */
internal class Network(private val transport: Transport, private val policy: Policy) {
    /** The answer to an upload; null where there was none. */
    fun upload(url: String, body: ByteArray): Answer? =
        exchange(Request(url, mapOf("Content-Type" to MEDIA_TYPE), body, policy.requestTimeout, LARGEST_ANSWER))

    /** The bytes at an address, tried a few times until then. Throws [AwayException], `timeout` at the end of the time. */
    fun get(url: String, longest: Int, until: Deadline): ByteArray {
        for (tries in 1..FETCH_TRIES) {
            if (tries > 1) unlessInterrupted("cancelled") { Thread.sleep(minOf(policy.backoffBase, until.left()).inWholeMilliseconds) }
            until.check()
            val answer = exchange(Request(url, emptyMap(), null, minOf(policy.requestTimeout, until.left()), longest))
            if (answer?.status == 200) return answer.body
            val later = answer == null || answer.status >= 500 || answer.status == 429
            if (later) until.check()
            if (!later || tries == FETCH_TRIES) throw AwayException(reasonOf(answer))
        }
        error("it was tried once at least")
    }

    /** How a campaign stands, in one short try; null where that is not said. */
    fun state(url: String, wait: Duration): ByteArray? =
        exchange(Request(url, emptyMap(), null, minOf(policy.requestTimeout, STATE_WAIT, wait), LARGEST_STATE))
            ?.takeIf { it.status == 200 && it.body.size <= LARGEST_STATE }?.body

    private fun exchange(request: Request): Answer? = try {
        transport.send(request)
    } catch (error: IOException) {
        null
    } catch (error: RuntimeException) {
        null // of a transport of the app's own: the report only has to be tried again
    }

    companion object {
        const val LARGEST_ANSWER = 1 shl 20
        const val LARGEST_MODEL = 64 shl 20
        private const val LARGEST_STATE = 1024

        // ASCII, the host in lower case, without the standard port.
        private const val PATH = "(:(?!(443|80)\\b)[0-9]+)?(/[A-Za-z0-9_./~%-]*)?"
        private val ADDRESS = Regex("(https://([a-z0-9._-]+|\\[[a-f0-9:]+])|http://(localhost|127(\\.[0-9]+){3}|\\[::1]))$PATH")
        private const val PRIVATE = "10(\\.[0-9]{1,3}){3}|(192\\.168|172\\.(1[6-9]|2[0-9]|3[01]))(\\.[0-9]{1,3}){2}"
        private val PLAIN = Regex("http://($PRIVATE|[a-z0-9-]+\\.local)$PATH")

        /** The address without a slash at its end. Throws [LdpException] for one that reports must not be sent to. */
        fun checkUrl(url: String, allowPlainHttp: Boolean): String {
            ensure(ADDRESS.matches(url) || (allowPlainHttp && PLAIN.matches(url)), "bad-url") {
                "must be https, or http on loopback, in ASCII, the host in lower case; Policy.allowPlainHttp is for debug builds"
            }
            return url.trimEnd('/')
        }
    }
}
