// The table of answers that all clients are held to (answers.json), and a thousand devices that hear them.
package org.example.ldpbayes

import org.example.ldpbayes.testing.MemoryStorage
import java.io.IOException
import kotlin.time.Duration

private const val NOW = 1_800_000_000_000L
private const val HOUR = 3_600_000L
private const val DAY = 24 * HOUR

private fun milliseconds(seconds: Any?): Long = ((seconds as Double) * 1000).toLong()

internal fun problem(status: Int, code: String, vararg headers: Pair<String, String>) =
    Answer(status, mapOf("content-type" to "application/problem+json", *headers), """{"code": "$code"}""".toByteArray())

internal fun rejecting(codes: Map<String, String>, headers: Map<String, String> = emptyMap()): Answer {
    val rejected = codes.entries.joinToString { (id, code) -> """["$id", "$code"]""" }
    return Answer(200, headers, """{"rejected": [$rejected]}""".toByteArray())
}

/** The queue of one case, and the moment at which it is. */
private class Queue(case: Members) {
    private val reports = List((case["reports"] as Double).toInt()) { Kept("0$it".repeat(16), 0, "y", "00") }
    private val expires = NOW + (case["expires"]?.let(::milliseconds) ?: (30 * DAY))
    private val receipt = Receipt(ID, "", null, 1.0, listOf(0), NOW, "", Fate.ON_ITS_WAY)
    private var state = State() + (ID to Entry(Consent("", grantedAt = NOW), receipt, reports, expires = expires))
    var now = NOW
    val entry get() = state.campaigns.getValue(ID)
    val front get() = entry.queued.take(entry.most ?: Int.MAX_VALUE)
    val left get() = entry.reports.map { it.reply ?: "waits" }

    fun hear(told: Members) {
        now += milliseconds(told["after"])
        state = state.answered(Batch(ID, "", front, 0), answer(told), now, Policy(), 0.5)
    }

    private fun answer(told: Members): Answer? {
        val status = (told["status"] as Double).toInt()
        val headers = (told["headers"] as? Map<*, *>).orEmpty().entries.associate { (name, value) -> "$name" to "$value" }
        val codes = told["rejected"] as? List<*>
        return when {
            status == 0 -> null
            codes != null -> rejecting(front.associate { it.id to codes[reports.map(Kept::id).indexOf(it.id)] }.filterNulls(), headers)
            "body" in told -> Answer(status, headers, (told["body"] as String).toByteArray())
            else -> problem(status, told["code"] as String, *headers.toList().toTypedArray())
        }
    }

    private fun Map<String, Any?>.filterNulls(): Map<String, String> = filterValues { it != null }.mapValues { (_, code) -> code as String }

    private companion object {
        const val ID = "campaign"
    }
}

internal fun answers(case: Members, equal: (Any?, Any?) -> Unit) {
    val queue = Queue(case)
    listOfMembers(case["answers"]).forEach(queue::hear)
    equal(queue.left, case["left"])
    if (queue.entry.queued.isNotEmpty()) {
        equal((queue.entry.due!! - queue.now) / 1e3, case["wait"] ?: 0.0)
        equal(queue.front.size < queue.entry.queued.size, case["split"] ?: false)
    }
    case["kept"]?.let { equal(queue.entry.hasExpired(queue.now + milliseconds(it)), false) }
    case["given_up"]?.let { equal(queue.entry.hasExpired(queue.now + milliseconds(it)), true) }
}

/** A thousand devices with clocks that are right, or for a day 200 days ahead or behind, and their one server. */
internal class Thousand(private val campaign: Campaign, private val record: Members) {
    private val url = "https://collect.example"
    private var now = NOW
    private var uploads = 0
    private var state = "open"
    private var upload: () -> Answer? = { rejecting(emptyMap()) }

    private val transport = Transport { request ->
        when {
            request.body != null -> upload()?.also { uploads++ } ?: throw IOException("no network")
            request.url.endsWith("/state") -> Answer(200, emptyMap(), """{"state": "$state"}""".toByteArray())
            else -> Answer(200, emptyMap(), campaign.document)
        }
    }

    private val devices = List(1000) { number ->
        val off = listOf(0, 200, -200)[number % 3] * DAY
        Device(MemoryStorage(), 10.0, Policy(), transport) { now + if (now < NOW + DAY) off else 0 }
    }

    private fun of(device: Device): DeviceCampaign = device.campaign(url, campaign.id, maxEpsilon = 4.0)

    /** What a server says while its clock is wrong, of the upload of a device. */
    private val wrong = listOf<(Device) -> Answer?>(
        { problem(409, "campaign-closed") },
        { device -> rejecting(device.sent().associate { it.id to "campaign-full" }) },
        { device -> rejecting(device.sent().associate { it.id to "window-over" }) },
        { problem(409, "campaign-closing", "retry-after" to "60") },
        { problem(503, "clock-unsettled") },
        { null },
    )

    fun loseNothing() {
        for (device in devices) {
            of(device).run {
                load(campaign.document)
                grant()
                contribute(record, "yes")
            }
        }
        for (hour in listOf(0.0, 1.0, 7.0, 14.0, 21.0, 23.99, 24.0, 31.0)) {
            for ((number, device) in devices.withIndex()) {
                now = NOW + (hour * HOUR).toLong()
                upload = { if (hour < 24) wrong[number % wrong.size](device) else rejecting(emptyMap()) }
                device.runOnce(Duration.ZERO)
                val status = of(device).status()
                check(status.queued + status.sent == 1 && status.dropped.isEmpty() && status.fate != Fate.EXPIRED) {
                    "$hour h, $number: $status"
                }
                check(if (hour < 24) status.queued == 1 else hour < 31 || status.sent == 1) { "$hour h, $number: $status" }
            }
        }
    }

    fun askNobody() {
        val ends = mapOf("closed" to Refusal.CLOSED, "full" to Refusal.FULL, "deleted" to Refusal.DELETED).toList()
        for ((number, device) in devices.withIndex()) {
            val (end, refusal) = ends[number % 3]
            state = end
            check(of(device).nextStep() == NextStep.Nothing(refusal.code)) { "$number was asked" }
            check(device.ledger().totalEpsilon == 0.0)
        }
        check(uploads == 0)
    }
}
