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

/** Why a device does not answer a campaign; [code] is the word that the other clients use. */
enum class Refusal(val code: String) {
    /** The person has switched contributing off. */
    SWITCHED_OFF("switched-off"),

    /** The person agreed to another address; `grant` asks for this one. */
    OTHER_RECIPIENT("other-recipient"),

    /** It opens later. */
    NOT_OPEN("campaign-not-open"),

    /** It has closed. */
    CLOSED("campaign-closed"),

    /** It has closed, which may still be taken back. */
    CLOSING("campaign-closing"),

    /** It has all the answers that it takes. */
    FULL("campaign-full"),

    /** It was deleted. */
    DELETED("campaign-deleted"),

    /** In a series, this device's window is still to come: come again then. */
    WINDOW_NOT_OPEN("window-not-open"),

    /** In a series, this device's window is over; it answers in no other. */
    WINDOW_OVER("window-over"),

    /** It costs more than the app allows for it. */
    ABOVE_CAP("loss-above-cap"),

    /** With what was answered before, it costs more than the device's cap. */
    ABOVE_TOTAL("total-above-cap"),

    /** Another campaign of its study was answered. */
    STUDY_ANSWERED("study-answered"),

    /** No directory of the publisher holds now. */
    DIRECTORY_EXPIRED("directory-expired"),

    /** The publisher does not name it. */
    NOT_IN_DIRECTORY("not-in-directory"),
}

/** When this device answers a series, once it has a secret to draw that from. */
internal fun State.window(campaign: Campaign): OpenEndRange<Instant>? =
    if (secret.isEmpty()) null else campaign.windows?.times(drawWindow(campaign, unhex(secret)))

/** Why a device in this state does not answer; null where it would. */
internal fun State.refusal(campaign: Campaign, url: String, maxEpsilon: Double, maxTotalEpsilon: Double, now: Long): Refusal? {
    val consent = campaigns[campaign.id]?.consent
    val own = window(campaign)
    val at = Instant.ofEpochMilli(now)
    val tolerance = CLOCK_TOLERANCE.inWholeMilliseconds
    return when {
        !enabled -> Refusal.SWITCHED_OFF
        consent?.given == true && consent.url != url -> Refusal.OTHER_RECIPIENT
        campaign.opens != null && now + tolerance < campaign.opens.toEpochMilli() -> Refusal.NOT_OPEN
        campaign.closes != null && now - tolerance > campaign.closes.toEpochMilli() -> Refusal.CLOSED
        !campaign.loss.within(maxEpsilon) -> Refusal.ABOVE_CAP
        !(receipts.total() + Ratio.of(campaign.realisedEpsilon)).within(maxTotalEpsilon) -> Refusal.ABOVE_TOTAL
        campaign.study != null && receipts.any { it.study == campaign.study } -> Refusal.STUDY_ANSWERED
        own != null && at < own.start -> Refusal.WINDOW_NOT_OPEN
        own != null && at >= own.endExclusive -> Refusal.WINDOW_OVER
        else -> null
    }
}
