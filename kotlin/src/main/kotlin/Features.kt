package ldpbayes

internal const val MOST_FEATURES = 1000
internal const val MOST_CELLS = 65536
internal const val MOST_VALUES = 16384
internal const val MOST_CLASSES = 1024
internal const val MOST_WEIGHT = 65536
private const val MISSING = "missing"
/** The class to learn. */
data class Label(val name: String, val classes: List<String>) {
    private val declared by lazy { Declared(classes) }
    /** The position of the class that a value means; null for one that is not declared. */
    fun indexOf(value: Any?): Int? = declared[value]
}

/** Something that a campaign knows of people, by the name that it has in records. */
sealed interface Feature {
    /** The key in a record. */ val name: String
    /** Whether a record may be without a value, which then has a cell of its own. */ val missing: Boolean
    /** Values of a discrete feature, ends of one that is not. */ val size: Int
    /** What there is to answer: the values, and after them that there is none where that may be. */
    val cells: Int get() = if (missing) size + 1 else size
}

/** One of [values]. */
data class Categorical(override val name: String, val values: List<String>, override val missing: Boolean) : Feature {
    private val declared by lazy { Declared(values) }
    override val size get() = values.size
    /** The index of a value; of a missing or undeclared one that of `missing` where it is declared, else null. */
    internal fun indexOf(value: Any?): Int? = declared[value] ?: values.indexOf(MISSING).takeIf { it >= 0 }
}

/** A number, clipped to [low] and [high]; with [bins] it is discretised. */
data class Continuous(
    override val name: String, val low: Double, val high: Double, val bins: Int?, override val missing: Boolean,
) : Feature {
    override val size get() = bins ?: 2
    internal val span get() = high - low
    internal fun clip(number: Double): Double = Math.min(Math.max(number, low), high)
    /** T = 2 (x - low) / (high - low) - 1 in [-1, 1], x clipped first. */
    internal fun scaled(number: Double): Double = Math.min(Math.max(2 * ((clip(number) - low) / span) - 1, -1.0), 1.0)
    /** The bin of a number, of equal width and half-open. */
    internal fun indexOf(value: Any?): Int? =
        numberOf(value)?.let { number -> (1 until size).firstOrNull { number < low + span * it / size }?.minus(1) ?: (size - 1) }
}

internal fun Feature.isGaussian(): Boolean = this is Continuous && bins == null
internal fun Feature.indexOf(value: Any?): Int? = when (this) {
    is Categorical -> indexOf(value)
    is Continuous -> indexOf(value)
}

/** A declared feature, in a campaign of [classes] classes. */
internal fun readFeature(value: Any?, place: String, classes: Int): Feature = readObject(value, place) {
    val name = name("name")
    val kind = choice("kind", listOf("categorical", "continuous"))
    optionalWhole("weight", 1L..MOST_WEIGHT)
    val said = switch("missing")
    val feature = if (kind == "categorical") {
        val values = declared("values", MOST_VALUES)
        val listed = MISSING in values
        require(!(listed && said == true), "missing", "is one of the values; leave this out")
        require(!(switch("ordered") == true && listed), "ordered", "'missing' has no place in an order")
        Categorical(name, values, said != false && !listed)
    } else {
        readContinuous(name, said != false, optionalWhole("bins", 2L..MOST_VALUES)?.toInt())
    }
    require(feature.cells * classes <= MOST_CELLS, "values", "are too many for one question")
    feature
}

internal fun Fields.readContinuous(name: String, missing: Boolean, bins: Int?): Continuous {
    val feature = Continuous(name, number("low"), number("high"), bins, missing)
    val (_, low, high) = feature
    // Squares of their distance, which variances are made of, are still doubles.
    require(feature.span in 1e-150..1e150, "high", "must be above low, by 1e-150 to 1e150")
    val step = Math.ulp(Math.max(Math.abs(low), Math.abs(high)))
    require(bins == null || feature.span / bins >= 4 * step, "bins", "are narrower than a double resolves")
    return feature
}

/** A list of declared features whose names, with [others], are all different. */
internal fun Fields.readFeatures(name: String, sizes: IntRange, classes: Int, others: List<String>): List<Feature> {
    val features = list(name, sizes).mapIndexed { at, value -> readFeature(value, place("$name[$at]"), classes) }
    val names = others + features.map { it.name }
    require(names.toSet().size == names.size, name, "must have different names")
    return features
}
