package org.example.ldpbayes

import java.time.Instant

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
        !(receipts.total() + campaign.loss).within(maxTotalEpsilon) -> Refusal.ABOVE_TOTAL
        campaign.study != null && receipts.any { it.study == campaign.study } -> Refusal.STUDY_ANSWERED
        own != null && at < own.start -> Refusal.WINDOW_NOT_OPEN
        own != null && at >= own.endExclusive -> Refusal.WINDOW_OVER
        else -> null
    }
}
