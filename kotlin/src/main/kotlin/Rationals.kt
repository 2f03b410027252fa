// Rational numbers, and logarithms rounded up: what decides whether a loss stays within its epsilon.
package org.example.ldpbayes

import java.math.BigDecimal
import java.math.BigInteger
import java.math.MathContext
import java.math.RoundingMode

/** A fraction; the denominator is above 0. */
internal data class Ratio(val numerator: BigInteger, val denominator: BigInteger) : Comparable<Ratio> {
    operator fun plus(other: Ratio) = Ratio(numerator * other.denominator + other.numerator * denominator, denominator * other.denominator)

    override fun compareTo(other: Ratio): Int = (numerator * other.denominator).compareTo(other.numerator * denominator)

    /** Whether a loss is certainly at most [epsilon]: the lesser of its decimal text and its double. */
    fun within(epsilon: Double): Boolean = this <= of(shortest(epsilon)) && this <= of(epsilon)

    /** The least double that is not below this one. */
    fun doubleUp(): Double {
        val near = BigDecimal(numerator).divide(BigDecimal(denominator), MathContext(40, RoundingMode.FLOOR)).toDouble()
        return generateSequence(near, Math::nextUp).first { of(it) >= this }
    }

    companion object {
        val ZERO = Ratio(BigInteger.ZERO, BigInteger.ONE)

        /** A double as it is. */
        fun of(double: Double): Ratio = of(BigDecimal(double))
        private fun of(decimal: BigDecimal): Ratio = decimal.setScale(maxOf(decimal.scale(), 0)).let {
            Ratio(it.unscaledValue(), BigInteger.TEN.pow(it.scale()))
        }
    }
}

/**
 * The shortest decimal that a double is read from, the nearest of those. `Double.toString` gives longer ones before Java 19, and
 * Android has an algorithm of its own.
 */
internal fun shortest(double: Double): BigDecimal {
    val exact = BigDecimal(double)
    // Every decimal of 15 digits is told apart by the doubles that are not tiny.
    val first = if (Math.abs(double) < 1e-300) 1 else 15
    for (digits in first..16) {
        listOf(RoundingMode.DOWN, RoundingMode.UP)
            .map { exact.round(MathContext(digits, it)) }
            .filter { it.toDouble() == double }
            .minByOrNull { (it - exact).abs() }
            ?.let { return it }
    }
    return exact.round(MathContext(17, RoundingMode.HALF_EVEN))
}

private const val LOG_BITS = 128

/** An upper bound of ln(a / b), the least multiple of 2^-128 whose exp certainly reaches it; 0 for a <= b, and for no other. */
internal fun logUp(a: BigInteger, b: BigInteger): Ratio {
    val unit = BigInteger.ONE.shiftLeft(LOG_BITS)
    var low = BigInteger.ZERO
    var high = BigInteger.valueOf(128) * unit
    while (low < high) {
        val middle = (low + high).shiftRight(1)
        if (expDown(middle) * b >= a * unit) high = middle else low = middle + BigInteger.ONE
    }
    return Ratio(low, unit)
}

/** A lower bound of exp(x / 2^128) * 2^128: every term of the series is rounded down. */
private fun expDown(x: BigInteger): BigInteger {
    var term = BigInteger.ONE.shiftLeft(LOG_BITS)
    var total = term
    var place = 1L
    while (term.signum() > 0) {
        term = (term * x).shiftRight(LOG_BITS) / BigInteger.valueOf(place++)
        total += term
    }
    return total
}
