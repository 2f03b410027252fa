package org.example.ldpbayes

import java.time.Instant
import kotlin.time.Duration
import kotlin.time.Duration.Companion.days
import kotlin.time.Duration.Companion.hours
import kotlin.time.Duration.Companion.minutes

private const val MOST_WINDOWS = 4096
private const val LATEST_YEAR = 9000
private val LENGTH = Regex("P(?=[0-9]+[WD]|T[0-9]+[HM])T?([1-9][0-9]{0,3})(.)")
private val UNITS = mapOf("W" to 7.days, "D" to 1.days, "H" to 1.hours, "M" to 1.minutes)

/** A campaign that asks the same people time after time, each device once in its life: [count] windows, one after another. */
internal class Windows(val from: Instant, val length: Duration, val count: Int) {
    fun opens(window: Int): Instant = from.plusMillis((length * window).inWholeMilliseconds)

    /** A window in words: its number, from 1 on. */
    fun name(window: Int): String = "window ${window + 1} of $count"

    /** When devices of this window answer. */
    fun times(window: Int): OpenEndRange<Instant> = opens(window)..<opens(window + 1)
}

internal fun Fields.readWindows(): Windows {
    val from = instant("from") ?: refuse("from", "is missing")
    val (number, unit) = LENGTH.matchEntire(name("length"))?.destructured
        ?: refuse("length", "must be one number of weeks, days, hours or minutes (P7D, PT1H)")
    val windows = Windows(from, UNITS.getValue(unit) * number.toInt(), whole("count", 2..MOST_WINDOWS))
    val years = LATEST_YEAR - "$from".take(4).toInt()
    require(windows.length * windows.count <= 365.days * years, "count", "lasts beyond the year $LATEST_YEAR")
    return windows
}
