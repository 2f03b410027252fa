package org.example.ldpbayes.testing

import org.example.ldpbayes.Answer
import org.example.ldpbayes.Campaign
import org.example.ldpbayes.Request
import org.example.ldpbayes.Transport
import java.io.IOException
import java.util.Collections
import java.util.concurrent.ConcurrentHashMap

/** An aggregator in memory: its documents and models by id, and every upload that came. It is a device's transport. */
class FakeAggregator : Transport {
    val documents: MutableMap<String, ByteArray> = ConcurrentHashMap()
    val models: MutableMap<String, ByteArray> = ConcurrentHashMap()

    /** How campaigns stand, by id: `not-yet`, `closing`, `closed`, `full` or `deleted`; any other is `open`. */
    val states: MutableMap<String, String> = ConcurrentHashMap()

    /** Signed directories by the publisher's key. */
    val directories: MutableMap<String, ByteArray> = ConcurrentHashMap()

    /** Bodies of uploads, in the order of arrival. */
    val uploads: MutableList<ByteArray> = Collections.synchronizedList(ArrayList())

    /** Called first with every request; what it returns is the answer, and what it throws is a network that fails. */
    @Volatile
    var intercept: (Request) -> Answer? = { null }

    /** Loses the answers to this many uploads that did arrive. */
    @Volatile
    var loseAnswers = 0

    /** Serves the campaign of a document, such as one that `ldp-aggregator campaign create` printed. */
    fun publish(document: ByteArray): Campaign = Campaign.parse(document).also { documents[it.id] = document }

    override fun send(request: Request): Answer {
        intercept(request)?.let { return it }
        val path = request.url.replace(BASE, "")
        DIRECTORY.matchEntire(path)?.let { return answer(directories[it.groupValues[1]], "no-directory") }
        val (id, rest) = CAMPAIGN.matchEntire(path)?.destructured ?: return problem(404, "not-found")
        val document = documents[id] ?: return problem(404, "unknown-campaign")
        val body = request.body
        return when {
            body != null -> take(body)
            rest == "/state" -> answer("""{"state": "${states[id] ?: "open"}"}""".toByteArray())
            rest == "/model" -> answer(models[id], "no-model")
            else -> answer(document.takeIf { rest.isEmpty() })
        }
    }

    private fun take(body: ByteArray): Answer {
        uploads += body
        if (loseAnswers-- > 0) throw IOException("the answer was lost")
        return answer("""{"rejected": []}""".toByteArray())
    }

    private fun answer(body: ByteArray?, otherwise: String = "not-found"): Answer =
        body?.let { Answer(200, emptyMap(), it) } ?: problem(404, otherwise)

    companion object {
        private val BASE = Regex("^https?://[^/]+")
        private val DIRECTORY = Regex("/v1/directories/(.*)")
        private val CAMPAIGN = Regex("/v1/campaigns/([A-Za-z0-9_-]{43})(/.*)?")

        /** A problem document (RFC 9457) as an answer. */
        @JvmStatic
        @JvmOverloads
        fun problem(status: Int, code: String, headers: Map<String, String> = emptyMap()): Answer {
            val body = """{"status": $status, "code": "$code"}"""
            return Answer(status, headers + ("content-type" to "application/problem+json"), body.toByteArray())
        }
    }
}
