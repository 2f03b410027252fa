// The meaning of a record's value, as a text and as a number: by value, never by type (docs/values.md). Nothing throws: what cannot
// be read is missing.
package org.example.ldpbayes

import java.math.BigDecimal
import java.math.BigInteger

private val NUMERAL = Regex("[ \t]*[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")
private val WHOLE = Regex("(-?[0-9]+)\\.0+")
private val WRITABLE = BigInteger.TEN.pow(LONGEST_TEXT)
private val TRUTH_VALUES = mapOf("1" to listOf("true", "True"), "0" to listOf("false", "False"))

/** What a record holds under a name; null where it holds nothing, or cannot say. */
internal fun held(record: Map<String, Any?>, name: String): Any? = readable { record[name] }

/** The double nearest to a value, infinities included; null for anything that is no number. */
internal fun numberOf(value: Any?): Double? = readable {
    when (val plain = plain(value)) {
        is String -> plain.takeIf { it.length <= LONGEST_TEXT && NUMERAL.matches(it) }?.trim(' ', '\t')?.toDouble()
        is Number -> plain.toDouble().takeUnless(Double::isNaN)
        else -> null
    }
}

/** The text that a value is compared by; null where it has none. */
internal fun textOf(value: Any?): String? = readable {
    when (val plain = plain(value)) {
        is String -> composed(plain)

        is BigInteger -> digits(plain)

        is BigDecimal -> if (isWhole(plain)) digits(plain.toBigIntegerExact()) else textOf(plain.toDouble())

        is Double -> when {
            !plain.isFinite() -> null
            plain == Math.rint(plain) -> digits(BigDecimal(plain).toBigIntegerExact())
            else -> shortest(plain).stripTrailingZeros().toPlainString().takeIf { it.length <= LONGEST_TEXT }
        }

        else -> null
    }
}

/** Truth values as the numbers 1 and 0, and every number as one of three types. */
private fun plain(value: Any?): Any? = when (value) {
    is Boolean -> if (value) BigInteger.ONE else BigInteger.ZERO
    is Byte, is Short, is Int, is Long -> BigInteger.valueOf((value as Number).toLong())
    is UByte, is UShort, is UInt, is ULong -> BigInteger("$value")
    is Float -> value.toDouble()
    else -> value
}

private fun isWhole(value: BigDecimal): Boolean = value.signum() == 0 ||
    (value.precision().toLong() - value.scale() <= LONGEST_TEXT && value.stripTrailingZeros().scale() <= 0)

private fun digits(whole: BigInteger): String? = whole.takeIf { it.abs() < WRITABLE }?.toString()

/** Safety: nothing that depends on a record leaves this file as an error, whatever a map or a number of the app's own throws. */
private inline fun <T> readable(read: () -> T?): T? = try {
    read()
} catch (error: Exception) {
    null
}

/** The classes of a label, or the values of a feature. */
internal class Declared(texts: List<String>) {
    private val positions: Map<String, Int> = HashMap<String, Int>().apply {
        texts.forEachIndexed { position, text -> this[composed(text)] = position }
        // Where 1 is not declared itself, a declared 1.0 is another name of it, or else a truth value.
        for ((text, position) in toList()) whole(text)?.let { putIfAbsent(it, position) }
        for ((digit, names) in TRUTH_VALUES) for (name in names) this[name]?.let { putIfAbsent(digit, it) }
    }

    /** The position of the text that a value means; null for anything else. */
    operator fun get(value: Any?): Int? = textOf(value)?.let { positions[it] ?: positions[whole(it)] }

    private fun whole(text: String): String? = WHOLE.matchEntire(text)?.groupValues?.get(1)
}
