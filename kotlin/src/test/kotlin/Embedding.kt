package org.example.ldpbayes

import org.example.ldpbayes.testing.FakeAggregator
import org.example.ldpbayes.testing.MemoryStorage
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.coroutines.Continuation
import kotlin.coroutines.EmptyCoroutineContext
import kotlin.coroutines.startCoroutine
import kotlin.time.Duration.Companion.milliseconds

/** The client within an app: from coroutines, against a developer's machine, with the testing kit. */
internal class Embedding(private val plain: Campaign) {
    private val record = mapOf("colour" to "green")

    private fun device(aggregator: FakeAggregator, policy: Policy = Policy()) = Device(MemoryStorage(), 9.0, policy, aggregator)

    fun all() {
        coroutines()
        developersMachine()
        kit()
        log()
    }

    /** Runs a coroutine, and waits for its end. */
    private fun <T> waited(work: suspend () -> T): T {
        val end = CountDownLatch(1)
        var told: Result<T>? = null
        work.startCoroutine(
            Continuation(EmptyCoroutineContext) {
                told = it
                end.countDown()
            },
        )
        check(told == null) { "it has blocked its caller" }
        check(end.await(10, TimeUnit.SECONDS)) { "it has not ended" }
        return told!!.getOrThrow()
    }

    private fun coroutines() {
        val aggregator = FakeAggregator().apply { publish(plain.document) }
        val slow = Transport { request ->
            Thread.sleep(100)
            aggregator.send(request)
        }
        val device = Device(MemoryStorage(), 9.0, Policy(), slow)
        val campaign = device.campaign("https://collect.example", plain.id, 9.0)
        waited {
            check(campaign.awaitFetch().id == plain.id)
            check(campaign.awaitNextStep() is NextStep.Ask)
            check(campaign.awaitDecide(true) == NextStep.Contribute)
            check(campaign.awaitContribute(record, "no") is Contribution.Answered)
            check(device.awaitRunOnce())
            check(campaign.awaitWithdraw().deleted == 0)
        }
        val code = try {
            waited { campaign.awaitClassifier(20.milliseconds) }
        } catch (error: AwayException) {
            error.code
        }
        check(code == "timeout") { code }
        check(aggregator.uploads.size == 1)
        println("a coroutine waits for every call, and holds up no thread of its own")
    }

    private fun developersMachine() {
        val debug = Policy(allowPlainHttp = true)
        val near = "10.0.2.2:8080 10.1.2.3 192.168.1.7 172.16.0.1 172.31.255.1 studio.local:8080 localhost:1 127.0.0.1".split(" ")
        val names = "collect.example.org 10.0.2.2.example local a.local.example 10.0.2.2@a.example"
        val far = "$names 11.0.2.2 172.32.0.1 172.15.0.1 192.169.1.1 8.8.8.8 10.0.2".split(" ")

        fun taken(host: String, policy: Policy): Boolean = try {
            device(FakeAggregator(), policy).campaign("http://$host", plain.id, 9.0)
            true
        } catch (error: LdpException) {
            check(error.code == "bad-url")
            false
        }
        check(near.all { taken(it, debug) } && far.none { taken(it, debug) })
        check(near.filter { taken(it, Policy()) } == listOf("localhost:1", "127.0.0.1"))
        println("plain HTTP goes to a developer's machine alone, and only where a debug build says so")
    }

    private fun kit() {
        val aggregator = FakeAggregator().apply { publish(plain.document) }
        val device = device(aggregator, Policy(backoffBase = 1.milliseconds))
        val campaign = device.campaign("https://collect.example", plain.id, 9.0)
        aggregator.intercept = { FakeAggregator.problem(503, "busy") }
        check(campaign.nextStep() == NextStep.Nothing("busy"))
        aggregator.intercept = { null }
        aggregator.states[plain.id] = "full"
        check(campaign.nextStep() == NextStep.Nothing("campaign-full"))
        aggregator.states.clear()
        val another = device(aggregator, Policy(backoffBase = 1.milliseconds))
        val open = another.campaign("https://collect.example", plain.id, 9.0)
        check(open.decide(true) == NextStep.Contribute)
        open.contribute(record, "no")
        aggregator.loseAnswers = 1
        check(another.runOnce())
        check(aggregator.uploads.size == 2 && aggregator.uploads[0].contentEquals(aggregator.uploads[1]))
        println("an app's own tests have a storage and an aggregator in memory")
    }

    /** What is told of a whole life, and of a network that fails in many ways. */
    private fun log() {
        val told = ArrayList<Step>()
        val aggregator = FakeAggregator().apply { publish(plain.document) }
        val device = Device(MemoryStorage(), 9.0, Policy(backoffBase = 1.milliseconds), aggregator, { told += it }) { NOW }
        val campaign = device.campaign("https://collect.example", plain.id, 9.0)
        campaign.decide(true)
        campaign.contribute(record, "no")
        check(device.runOnce())
        check(told.map { listOf(it.name, it.code, it.cause) } == STEPS) { "$told" }
        check(told.all { it.time == NOW && it.campaignId == plain.id })
        val kept = device.sent().single()
        check(told.none { kept.id in "$it" || kept.payload in "$it" || "green" in "$it" })
        for ((error, code, cause) in FAILURES) {
            told.clear()
            val away = Device(MemoryStorage(), 9.0, Policy(backoffBase = 1.milliseconds), { throw error }, { told += it })
            check(away.campaign("https://collect.example", plain.id, 9.0).nextStep() == NextStep.Nothing("unreachable"))
            check(told.first().run { listOf(name, this.code, this.cause) } == listOf("document", code, cause)) { "$error: $told" }
        }
        val deaf = Device(MemoryStorage(), 9.0, Policy(), aggregator, { error("the app's own trouble") })
        check(deaf.campaign("https://collect.example", plain.id, 9.0).nextStep() is NextStep.Ask)
        println("a log is told each step and each failure with its cause, and nothing of a person")
    }

    private companion object {
        const val NOW = 1_800_000_000_000
        val STEPS = listOf(
            listOf("document", null, null),
            listOf("state", null, null),
            listOf("decide", "contribute", null),
            listOf("contribute", null, null),
            listOf("upload", null, null),
        )
        val FAILURES = listOf(
            Triple(java.net.UnknownHostException("collect.example"), "unreachable", "dns"),
            Triple(java.net.SocketTimeoutException(), "timeout", "timeout"),
            Triple(java.net.ConnectException(), "unreachable", "refused"),
            Triple(java.net.SocketException(), "unreachable", "reset"),
            Triple(CookiesException(), "unreachable", "cookies"),
            Triple(java.io.IOException("42 green"), "unreachable", "IOException"),
            Triple(IllegalStateException("42 green"), "unexpected", "IllegalStateException"),
            Triple(
                javax.net.ssl.SSLHandshakeException("no").apply { initCause(java.security.cert.CertificateExpiredException()) },
                "unreachable",
                "tls: CertificateExpiredException",
            ),
        )
    }
}
