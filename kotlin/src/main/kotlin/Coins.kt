package org.example.ldpbayes

import java.math.BigInteger
import java.nio.ByteBuffer
import java.nio.ByteOrder
import java.security.SecureRandom
import java.security.Security
import javax.crypto.Mac
import javax.crypto.spec.SecretKeySpec

/**
 * Exact random decisions out of 64-bit words: no floating-point number decides one. The order in which words are taken is that of
 * `protocols/vectors/README.md`.
 *
 * @param word gives independent words, uniform on [0, 2^64).
 */
internal class Coins(private val word: () -> ULong) {
    /** True with probability `probability` / 2^64. */
    fun bernoulli(probability: ULong): Boolean = word() < probability

    /** True with probability (1 + v) / 2, v being a quantity in units of 2^-52. */
    fun sign(v: Long): Boolean = (word() shr 11).toLong() < v + UNIT

    /** Uniform in [0, bound), by rejection, never by modulo; 1 takes no word. */
    fun below(bound: BigInteger): BigInteger {
        val bits = (bound - BigInteger.ONE).bitLength()
        if (bits == 0) return BigInteger.ZERO
        val mask = BigInteger.ONE.shiftLeft(bits) - BigInteger.ONE
        while (true) {
            val drawn = (0 until bits step WORD_BITS).fold(BigInteger.ZERO) { value, shift ->
                value or BigInteger(word().toString()).shiftLeft(shift)
            } and mask
            if (drawn < bound) return drawn
        }
    }

    fun below(bound: Long): Long {
        val bits = WORD_BITS - java.lang.Long.numberOfLeadingZeros(bound - 1)
        if (bits == 0) return 0
        while (true) {
            val drawn = (word() shl (WORD_BITS - bits) shr (WORD_BITS - bits)).toLong()
            if (drawn < bound) return drawn
        }
    }

    fun below(bound: Int): Int = below(bound.toLong()).toInt()

    /** A uniformly random subset of [size] of the numbers below [population] (Floyd's algorithm). */
    fun subset(population: Int, size: Int): Set<Int> {
        val chosen = HashSet<Int>()
        for (last in population - size until population) if (!chosen.add(below(last + 1))) chosen += last
        return chosen
    }

    /** Discrete Laplace noise whose scale is a fraction in lowest terms (Canonne, Kamath, Steinke 2020, Algorithm 2). */
    fun discreteLaplace(numerator: BigInteger, denominator: BigInteger): BigInteger {
        while (true) {
            val offset = below(numerator)
            if (!exponential(offset, numerator)) continue
            var periods = BigInteger.ZERO
            while (exponential(BigInteger.ONE, BigInteger.ONE)) periods += BigInteger.ONE
            val magnitude = (offset + numerator * periods) / denominator
            val negative = below(2L) == 1L
            if (!(negative && magnitude.signum() == 0)) return if (negative) -magnitude else magnitude
        }
    }

    /** True with probability exp(-numerator / denominator) (Algorithm 1). */
    private fun exponential(numerator: BigInteger, denominator: BigInteger): Boolean {
        var trials = 1L
        while (below(denominator * BigInteger.valueOf(trials)) < numerator) trials++
        return trials % 2 == 1L
    }

    companion object {
        /** The platform's words, drawn in blocks of 64; what is left of a block is dropped with the coins. */
        fun system(): Coins {
            var block = ByteBuffer.allocate(0)
            return Coins {
                if (!block.hasRemaining()) block = ByteBuffer.wrap(randomBytes(8 * 64))
                block.long.toULong()
            }
        }

        /** Words that are a function of a secret and a message: one HMAC-SHA256 each, its first 8 bytes, little-endian. */
        fun keyed(secret: ByteArray, message: ByteArray): Coins {
            var number = 0
            return Coins {
                ByteBuffer.wrap(hmac(secret, message + littleEndian(number++, 4))).order(ByteOrder.LITTLE_ENDIAN).long.toULong()
            }
        }
    }
}

private const val WORD_BITS = 64
internal fun hmac(key: ByteArray, message: ByteArray): ByteArray = Mac.getInstance("HmacSHA256").run {
    init(SecretKeySpec(key, algorithm))
    doFinal(message)
}

/** The platform's generator. Without a provider SecureRandom() falls back to one of Java's own, which nobody has vouched for. */
private val generator by lazy { if (Security.getAlgorithms("SecureRandom").isEmpty()) null else SecureRandom() }

/** Bytes of the platform's generator. Throws [LdpException] `no-randomness` where there is none: nothing is drawn then. */
internal fun randomBytes(size: Int): ByteArray = try {
    ByteArray(size).also(generator!!::nextBytes)
} catch (error: RuntimeException) {
    throw LdpException("no-randomness", "the platform has no generator of random numbers that works", error)
}
