// What an answer means for a queue: the upload state machine, without I/O. A report that has left once may arrive once only, so a
// doubtful answer always means: the same bytes again, later.
package org.example.ldpbayes

import java.time.DateTimeException
import java.time.Instant
import java.time.format.DateTimeFormatter
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds

// "Later", whatever their status.
private val RETRYABLE_CODES =
    setOf("campaign-not-open", "window-not-open", "not-found", "campaign-closing", "clock-unsettled", "unknown-campaign")

// Final when they are heard twice, a day apart by this device's clock: a server may have been wrong about the time, or about itself.
private val TERMINAL = setOf(404, 409, 410, 451)
private val TWICE_CODES = setOf("campaign-closed", "campaign-full", "window-over") // of every report of an upload
private const val GONE = 410 // at once, like what is wrong with the bytes
private val POISON = setOf(400, 415, 422)
private const val TOO_LARGE = 413
private val CODE = Regex("[A-Za-z0-9_.-]{1,64}")
private val SECONDS = Regex("[0-9]{1,9}")

/** The reports of one campaign that are due, and where they go. */
internal class Batch(val campaignId: String, val url: String, val reports: List<Kept>, private val length: Int) {
    fun body(): ByteArray = packed(reports.map { Report(it.question, unhex(it.id), unhex(it.payload)) }, length)
}

/** What to do now, and the state that says so: send [batch], or wait for [wait]; neither where nothing is queued. */
internal class Plan(val state: State, val batch: Batch?, val wait: Duration?)

/** Plans the delivery: schedules what is not scheduled, gives up what has expired, and takes what is due. [jitter] is from [0, 1). */
internal fun State.planned(now: Long, firstDelay: Duration, policy: Policy, jitter: () -> Double): Plan {
    var state = this
    var batch: Batch? = null
    var wait: Duration? = null
    for ((id, entry) in campaigns.filterValues { enabled && it.given && it.queued.isNotEmpty() }) {
        if (entry.hasExpired(now)) {
            state += id to entry.copy(receipt = entry.receipt!!.copy(fate = Fate.EXPIRED))
            continue
        }
        // No try lies further ahead than the policy allows, whatever a clock said when it was planned.
        val longest = if (entry.attempts > 0) maxOf(policy.backoffLongest, RETRY_AFTER_LONGEST) else firstDelay
        val due = minOf(entry.due ?: (now + (firstDelay * jitter()).inWholeMilliseconds), now + longest.inWholeMilliseconds)
        val left = maxOf(0, due - now).milliseconds
        wait = minOf(wait ?: left, left)
        var next = entry.copy(due = due)
        if (left == Duration.ZERO && batch == null) {
            val front = entry.queued.take(entry.most ?: Int.MAX_VALUE)
            batch = Batch(id, entry.consent.url, front, entry.uploadBytes)
            // From here on it may arrive, and is in the person's log.
            next = next.copy(
                receipt = entry.receipt!!.copy(fate = Fate.ON_ITS_WAY),
                reports = entry.reports.map { if (it in front) it.copy(at = it.at ?: now) else it },
            )
        }
        state += id to next
    }
    return Plan(state, batch, wait)
}

/** Whether what is queued is given up; who heard a final word once has a week to hear it again. */
internal fun Entry.hasExpired(now: Long): Boolean =
    now > expires && attempts >= EXPIRY_TRIES && (heard == null || now - heard >= CLOSING_GRACE.inWholeMilliseconds)

/** Takes note of the answer to an upload; null where there was none. */
internal fun State.answered(batch: Batch, answer: Answer?, now: Long, policy: Policy, jitter: Double): State {
    // What is due when the upload of another ends gets a moment anew: the server chooses when it answers.
    val parted = copy(campaigns = campaigns.mapValues { (_, entry) -> if ((entry.due ?: now) <= now) entry.copy(due = null) else entry })
    val entry = parted.campaigns[batch.campaignId] ?: return parted // erased meanwhile
    return parted + (batch.campaignId to entry.judged(batch.reports.map { it.id }.toSet(), answer, now, policy, jitter))
}

private fun Entry.judged(ids: Set<String>, answer: Answer?, now: Long, policy: Policy, jitter: Double): Entry {
    val code = answer?.problemCode()
    val status = answer?.status
    val rejected = answer?.takeIf { it.status == 200 }?.rejections()
    val isLater = code in RETRYABLE_CODES
    val isPoison = !isLater && (status == TOO_LARGE || (status in POISON && code != null))
    val isFinal = if (rejected != null) ids.all { rejected[it] in TWICE_CODES } else code != null && !isLater && status in TERMINAL
    // No answer leaves what was heard as it is, any other one ends it; a clock that was set back hears it anew.
    val since = if (isFinal) minOf(heard ?: now, now) else heard.takeIf { answer == null }
    val isSecond = isFinal && (status == GONE || now - since!! >= SECOND_WORD.inWholeMilliseconds)
    // One at a time from now on: the one that cannot be taken is then alone.
    if (ids.size > 1 && isPoison) return copy(problem = reasonOf(answer), most = 1, attempts = 0, due = now, heard = null)
    val replies = when {
        rejected != null -> ids.associateWith { rejected[it] ?: ARRIVED }.filterValues { isSecond || it !in RETRYABLE_CODES + TWICE_CODES }
        code != null && (isPoison || isSecond) -> ids.associateWith { code }
        else -> emptyMap()
    }
    if (replies.isNotEmpty()) return copy(problem = null, heard = null).settled(replies, now)
    // Exponential backoff with full jitter; Retry-After is the floor, up to its cap, for which a final word is left alone.
    val window = minOf(policy.backoffLongest, policy.backoffBase * Math.pow(2.0, minOf(attempts, 60).toDouble()))
    val floor = if (isFinal) RETRY_AFTER_LONGEST else minOf(answer?.retryAfter(now) ?: Duration.ZERO, RETRY_AFTER_LONGEST)
    val due = now + maxOf(window * jitter, floor).inWholeMilliseconds
    val problem = rejected?.get(ids.first()) ?: reasonOf(answer)
    return copy(problem = problem, attempts = attempts + 1, retries = retries + 1, due = due, heard = since)
}

private fun Entry.settled(replies: Map<String, String>, now: Long): Entry {
    val replied = copy(reports = reports.map { it.copy(reply = replies[it.id] ?: it.reply) }, attempts = 0, due = now)
    val arrived = replied.reports.any { it.reply == ARRIVED } // also where it was deleted on its way
    return if (receipt == null || replied.queued.isNotEmpty() || (!arrived && receipt.fate == Fate.DELETED)) {
        replied
    } else {
        replied.copy(receipt = receipt.copy(fate = if (arrived) Fate.ARRIVED else Fate.REFUSED))
    }
}

/** Why an answer is not what was asked for: its code, or its status. */
internal fun reasonOf(answer: Answer?): String = if (answer == null) "unreachable" else answer.problemCode() ?: "http-${answer.status}"

/** The stable code of a problem document (RFC 9457); null for anything else, such as a proxy's error page. */
internal fun Answer.problemCode(): String? {
    if (header("content-type")?.startsWith("application/problem+json", ignoreCase = true) != true) return null
    return (json() as? Map<*, *>)?.let { clean(it["code"] as? String ?: "") }
}

/** How long the server asks to wait: seconds, or a date by its own clock where it tells it. */
internal fun Answer.retryAfter(now: Long): Duration {
    val text = header("retry-after") ?: return Duration.ZERO
    if (SECONDS.matches(text)) return text.toInt().seconds
    val until = httpDate(text) ?: return Duration.ZERO
    return maxOf(0, until - (header("date")?.let(::httpDate) ?: now)).milliseconds
}

/** `{id: code}` of what a success refuses; null for a body that no aggregator sent. */
private fun Answer.rejections(): Map<String, String>? {
    val rejected = (json() as? Map<*, *>)?.get("rejected") as? List<*> ?: return null
    return rejected.associate { one ->
        val (id, code) = (one as? List<*>)?.takeIf { it.size >= 2 && it[0] is String && it[1] is String } ?: return null
        "$id" to clean("$code")
    }
}

private fun Answer.json(): Any? = try {
    Json.parse(String(body, Charsets.UTF_8))
} catch (error: IllegalArgumentException) {
    null
}

/** A server's code as far as it is one: it is kept, and shown. */
private fun clean(code: String): String = if (CODE.matches(code)) code else "unreadable-code"
private fun httpDate(text: String): Long? = try {
    Instant.from(DateTimeFormatter.RFC_1123_DATE_TIME.parse(text)).toEpochMilli()
} catch (error: DateTimeException) {
    null
}
