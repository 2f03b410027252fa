package org.example.ldpbayes

import java.time.Instant
import java.time.ZoneOffset

/** The receipts, and the cap that their sum is held to. As a text it tells a person in plain words. */
class Ledger internal constructor(
    /** What was contributed. */
    val receipts: List<Receipt>,
    /** The device's own cap. */
    val maxTotalEpsilon: Double,
) {
    /** To be told beside it. */
    val note: String get() = "If the storage of this installation is cleared, this count is lost and begins anew."

    /** Privacy loss so far, rounded up. */
    val totalEpsilon: Double get() = receipts.total().doubleUp()
    override fun toString(): String {
        val cap = written(maxTotalEpsilon)
        if (receipts.isEmpty()) return "This device has contributed to no campaign and has lost no privacy (epsilon 0 of at most $cap)."
        val campaigns = if (receipts.size == 1) "1 campaign" else "${receipts.size} campaigns"
        val head = "This device has contributed to $campaigns. Privacy loss so far: epsilon ${written(totalEpsilon)} of at most $cap."
        return (listOf(head) + receipts.map(::line)).joinToString("\n")
    }

    private fun line(receipt: Receipt): String {
        val answers = if (receipt.questions.size == 1) "1 answer" else "${receipt.questions.size} answers"
        val window = if (receipt.window.isEmpty()) "" else ", in ${receipt.window}"
        return "* \"${plain(receipt.title)}\" on ${day(receipt.at)}$window: $answers, with noise added on this device; " +
            "epsilon ${written(receipt.epsilon)}; ${receipt.fate.words}."
    }

    private fun day(at: Long): String {
        val day = Instant.ofEpochMilli(at).atOffset(ZoneOffset.UTC).toLocalDate()
        return if (day.year in 1..9999) "$day" else "an unknown day"
    }
}

/** What the receipts cost together, exactly. */
internal fun List<Receipt>.total(): Ratio = fold(Ratio.ZERO) { spent, receipt -> spent + Ratio.of(receipt.epsilon) }

/**
 * A report that left: what was [asked] and [said], in words for people, when first, to whom, and what the server replied. Where the
 * campaign's document is no longer at hand, [said] is the [payload], which is hexadecimal.
 */
data class SentReport(
    val campaignId: String,
    val title: String,
    val url: String,
    val asked: String,
    val said: String,
    val id: String,
    val payload: String,
    val at: Long,
    val reply: String?,
)
