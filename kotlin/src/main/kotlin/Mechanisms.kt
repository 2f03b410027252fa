package org.example.ldpbayes

import java.math.BigInteger
import java.nio.ByteBuffer
import java.nio.ByteOrder

/** What a record answers, before the mechanism; it must not leave the device. */
internal sealed interface Item {
    /** A cell. */
    data class Index(val index: Int) : Item

    /** A value that belongs to one cell: [value] is an integer V and means V / 2^52. */
    data class Moment(val cell: Int, val value: Long) : Item
}

/** How a record's answer becomes noise: the [name] in documents, the cells, the numbers that the document gives; [width] bytes. */
internal sealed class Mechanism(val width: Int) {
    /** As documents write it. */
    abstract val name: String

    /** Cells of the question. */
    abstract val domainSize: Int

    /** The worst-case log likelihood ratio, rounded up; null where the numbers make no mechanism, or one without signal. */
    internal abstract fun loss(): Ratio?

    /** The payload for an item. */
    internal abstract fun perturb(item: Item, coins: Coins): ByteArray

    /** How likely answers mark what is true; null where they mark nothing. */
    internal open val marking: Marking? get() = null

    /** The cells that a payload marks, in order. */
    internal open fun marked(payload: ByteArray): List<Int> = (0 until domainSize).filter { payload[it / 8].toInt() shr it % 8 and 1 == 1 }

    /** The scale of the noise in every cell, in units of the largest value; null where there is none. */
    internal open val noise: Double? get() = null

    internal companion object {
        /** Names of the numbers, encodings that are answered, and the mechanism of these numbers: the one table. */
        val TABLE: Map<String, Kind> = mapOf(
            "de" to Kind(listOf("p"), CELLS) { d, n -> DirectEncoding(d, n[0].toProbability()) },
            "ss" to Kind(listOf("w", "p"), CELLS) { d, n -> SubsetSelection(d, n[0], n[1].toProbability()) },
            *listOf("oue", "sue", "the").map { name ->
                name to Kind(listOf("p", "q"), CELLS) { d, n -> UnaryEncoding(name, d, n[0].toProbability(), n[1].toProbability()) }
            }.toTypedArray(),
            "onebit" to Kind(listOf("p"), setOf(Encoding.MOMENT)) { d, n -> OneBit(d, n[0].toProbability()) },
            "she" to Kind(listOf("scale"), setOf(Encoding.INDEX)) { d, n -> SummingHistogram(d, n[0]) },
            "laplace" to Kind(listOf("grid", "scale"), setOf(Encoding.MOMENT)) { d, n -> LaplaceVector(d, n[0], n[1]) },
        )
    }

    internal class Kind(val numbers: List<String>, val encodings: Set<Encoding>, val make: (Int, List<BigInteger>) -> Mechanism)
}

/** The true cell is marked with probability [p] / 2^64, any other one with [q]; [isOne] where one is marked, and no more. */
internal class Marking(val p: ULong, val q: Double, val isOne: Boolean)

private val CELLS = setOf(Encoding.INDEX, Encoding.SIGN)

/** Probability one: a probability is an integer P and means P / 2^64. */
internal val ONE: BigInteger = BigInteger.ONE.shiftLeft(64)

/** A value's one: it is an integer V and means V / 2^52. */
internal const val UNIT = 1L shl 52
private fun BigInteger.toProbability(): ULong = toString().toULong()
private fun share(probability: BigInteger): Double = Math.scalb(probability.toDouble(), -64)
private fun ULong.exact(): BigInteger = BigInteger(toString())
private val Int.big: BigInteger get() = toBigInteger()

/** A loss that protects nothing less than promised; none where there is no signal. */
private fun signal(loss: Ratio): Ratio? = loss.takeIf { it > Ratio.ZERO }

/** Direct encoding: the true index with probability p, else any other one. */
internal data class DirectEncoding(override val domainSize: Int, val p: ULong) : Mechanism(indexWidth(domainSize)) {
    override val name get() = "de"
    override fun loss() = signal(logUp(p.exact() * (domainSize - 1).big, ONE - p.exact()))
    override val marking get() = Marking(p, share(ONE - p.exact()) / (domainSize - 1), isOne = true)
    override fun marked(payload: ByteArray) = listOf(payload.foldRight(0) { byte, sum -> (sum shl 8) + (byte.toInt() and 255) })
    override fun perturb(item: Item, coins: Coins): ByteArray {
        val (index) = item as Item.Index
        val said = if (coins.bernoulli(p)) index else coins.below(domainSize - 1).skipping(index)
        return littleEndian(said, width)
    }
}

/** Subset selection: w random indices, the true one among them with probability p. */
internal data class SubsetSelection(override val domainSize: Int, val w: BigInteger, val p: ULong) : Mechanism(bitmapWidth(domainSize)) {
    override val name get() = "ss"
    override fun loss() = signal(logUp(p.exact() * (domainSize.big - w), (ONE - p.exact()) * w))
    override val marking: Marking
        get() {
            val others = p.exact() * (w - BigInteger.ONE) + (ONE - p.exact()) * w
            return Marking(p, share(others) / (domainSize - 1), isOne = w == BigInteger.ONE)
        }
    override fun perturb(item: Item, coins: Coins): ByteArray {
        val (index) = item as Item.Index
        val included = coins.bernoulli(p)
        val others = coins.subset(domainSize - 1, w.toInt() - if (included) 1 else 0).map { it.skipping(index) }
        return bitmap(width, if (included) others + index else others)
    }
}

/** Unary encoding (`sue`, `oue`, `the`): a bit per index, set with probability p for the true one, q for any other. */
internal data class UnaryEncoding(override val name: String, override val domainSize: Int, val p: ULong, val q: ULong) :
    Mechanism(bitmapWidth(domainSize)) {
    override fun loss() = signal(logUp(p.exact() * (ONE - q.exact()), q.exact() * (ONE - p.exact())))
    override val marking get() = Marking(p, share(q.exact()), isOne = false)
    override fun perturb(item: Item, coins: Coins): ByteArray {
        val (index) = item as Item.Index
        return bitmap(width, (0 until domainSize).filter { coins.bernoulli(if (it == index) p else q) })
    }
}

/** One bit of one cell: a cell drawn at random, and a bit whose bias tells the value there. */
internal data class OneBit(override val domainSize: Int, val p: ULong) : Mechanism(indexWidth(domainSize) + 1) {
    override val name get() = "onebit"
    override fun loss() = signal(logUp(p.exact(), ONE - p.exact()))
    override fun perturb(item: Item, coins: Coins): ByteArray {
        val (cell, value) = item as Item.Moment
        val drawn = coins.below(domainSize)
        val bit = coins.bernoulli(threshold(if (drawn == cell) value else 0))
        return littleEndian(drawn, width - 1) + (if (bit) 1 else 0).toByte()
    }

    /** The probability of a 1, of 2^64, where this value lies in the cell that is drawn. */
    fun threshold(value: Long): ULong {
        val rise = ((p.exact().shiftLeft(1) - ONE) * BigInteger.valueOf(value + UNIT)).shiftRight(53)
        return (ONE - p.exact() + rise).toProbability()
    }
}

/** Summing histogram encoding: a one-hot vector with discrete Laplace noise in every cell. */
internal data class SummingHistogram(override val domainSize: Int, val scale: BigInteger) : Mechanism(4 * domainSize) {
    override val name get() = "she"
    override fun loss() = lossOfNoise(BigInteger.ZERO, scale)
    override val noise get() = scaleOf(BigInteger.ZERO, scale)
    override fun perturb(item: Item, coins: Coins): ByteArray =
        noisyVector(BigInteger.ZERO, scale, domainSize, (item as Item.Index).index, BigInteger.ONE, coins)
}

/** The Laplace vector: a value at its cell, rounded at random to the grid, with noise in every cell. */
internal data class LaplaceVector(override val domainSize: Int, val grid: BigInteger, val scale: BigInteger) : Mechanism(4 * domainSize) {
    override val name get() = "laplace"
    override fun loss() = lossOfNoise(grid, scale)
    override val noise get() = scaleOf(grid, scale)
    override fun perturb(item: Item, coins: Coins): ByteArray {
        val (cell, value) = item as Item.Moment
        val cut = 52 - grid.toInt()
        val up = coins.bernoulli(value.toULong() shl (64 - cut))
        val rounded = (value shr cut) + if (up) 1 else 0
        return noisyVector(grid, scale, domainSize, cell, BigInteger.valueOf(rounded), coins)
    }
}

private const val SCALE_BITS = 40
private val FINEST_GRID = 12.toBigInteger()

/** The largest magnitude of a noisy cell: the unit and 16 scales of noise. */
private fun cellBound(grid: BigInteger, scale: BigInteger): BigInteger {
    val unit = BigInteger.ONE.shiftLeft(SCALE_BITS)
    return BigInteger.ONE.shiftLeft(grid.toInt()) + (scale.shiftLeft(4) + unit - BigInteger.ONE).shiftRight(SCALE_BITS)
}

private fun scaleOf(grid: BigInteger, scale: BigInteger): Double = Math.scalb(scale.toDouble(), -SCALE_BITS - grid.toInt())
private fun lossOfNoise(grid: BigInteger, scale: BigInteger): Ratio? = if (grid > FINEST_GRID || cellBound(grid, scale).bitLength() >= 32) {
    null
} else {
    Ratio(BigInteger.ONE.shiftLeft(SCALE_BITS + 1 + grid.toInt()), scale)
}

private fun noisyVector(grid: BigInteger, scale: BigInteger, d: Int, item: Int, value: BigInteger, coins: Coins): ByteArray {
    val common = minOf(scale.lowestSetBit, SCALE_BITS)
    val (numerator, denominator) = scale.shiftRight(common) to BigInteger.ONE.shiftLeft(SCALE_BITS - common)
    val bound = cellBound(grid, scale)
    val cells = ByteBuffer.allocate(4 * d).order(ByteOrder.LITTLE_ENDIAN)
    for (cell in 0 until d) {
        val noise = coins.discreteLaplace(numerator, denominator)
        cells.putInt((if (cell == item) value + noise else noise).min(bound).max(-bound).toInt())
    }
    return cells.array()
}

/** Bytes of an index on the wire. */
private fun indexWidth(d: Int): Int = if (d <= 256) {
    1
} else if (d <= 65536) {
    2
} else {
    4
}
private fun bitmapWidth(d: Int): Int = (d + 7) / 8
private fun bitmap(width: Int, indices: List<Int>): ByteArray = ByteArray(width).also { bytes ->
    for (index in indices) bytes[index / 8] = (bytes[index / 8].toInt() or (1 shl index % 8)).toByte()
}

/** This index among the d - 1 that are not [item]. */
private fun Int.skipping(item: Int): Int = if (this < item) this else this + 1
