package org.example.ldpbayes

import kotlin.time.Duration
import kotlin.time.Duration.Companion.days
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.minutes
import kotlin.time.Duration.Companion.seconds

/** The limits that an app decides; the names and the values are those of the Python client. */
data class Policy(
    /** [Device.start] waits a random time up to this before a first try, so that the time of arrival says little. */
    val firstDelay: Duration = 10.minutes,
    /** The n-th retry waits a random time below this times 2^n. */
    val backoffBase: Duration = 1.seconds,
    /** No retry waits longer than this, unless the server asks for it. */
    val backoffLongest: Duration = 1.hours,
    /** How long one request may take. */
    val requestTimeout: Duration = 30.seconds,
    /** A report is given up at this age, or when its campaign, or its window, has been over for a week; after ten tries. */
    val reportAge: Duration = 30.days,
    /**
     * For debug builds alone: plain HTTP to a developer's machine, which is a private address such as 10.0.2.2 (the host of Android's
     * emulator), or a name that ends in `.local`. Loopback needs no switch.
     */
    val allowPlainHttp: Boolean = false,
) {
    companion object {
        /** The same in milliseconds. */
        @JvmStatic
        @JvmOverloads
        fun ofMillis(
            firstDelay: Long = 600_000,
            backoffBase: Long = 1_000,
            backoffLongest: Long = 3_600_000,
            requestTimeout: Long = 30_000,
            reportAge: Long = 2_592_000_000,
            allowPlainHttp: Boolean = false,
        ): Policy = Policy(
            firstDelay.milliseconds,
            backoffBase.milliseconds,
            backoffLongest.milliseconds,
            requestTimeout.milliseconds,
            reportAge.milliseconds,
            allowPlainHttp,
        )
    }
}

// No app decides these; the Python client's policy.py has the reasons.
internal val RETRY_AFTER_LONGEST = 6.hours
internal val CLOSING_GRACE = 7.days
internal val CLOCK_TOLERANCE = 1.days
internal val SECOND_WORD = 1.days
internal val STATE_AGE = 1.days
internal val STATE_RETRY = 10.minutes
internal val STATE_WAIT = 5.seconds

/** How long a call waits unless told otherwise: an app starts, or a person waits. */
internal const val ASKING_MILLIS = 5_000L
internal val IDLE_CHECK = 15.minutes
internal val LANDING_TIMEOUT = 2.seconds
internal const val EXPIRY_TRIES = 10
internal const val FETCH_TRIES = 3
