package org.example.ldpbayes

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
    fun indexOf(value: Any?): Int? = declared[value ?: ""]
}

/** Something that a campaign knows of people, by the name that it has in records. Nobody else knows what kind it is. */
abstract class Feature internal constructor() {
    /** The key in a record. */
    abstract val name: String

    /** Whether a record may be without a value, which then has a cell of its own. */
    abstract val missing: Boolean

    /** Values of one that is asked as cells, ends of one that is asked as moments. */
    abstract val size: Int

    /** What there is to answer: the values, and after them that there is none where that may be. */
    val cells: Int get() = if (missing) size + 1 else size

    /** The values in words; each means its value, except where they are ranges of a number. */
    internal abstract val names: List<String>

    /** The names of what there is to answer. */
    internal val cellNames: List<String> get() = if (missing) names + MISSING else names

    /** The index of what a record holds; null for what is no value. */
    internal abstract fun indexOf(value: Any?): Int?

    /** The feature itself where its values are numbers. */
    internal open val number: Numeric? get() = null

    /** The feature itself where it is asked as moments: by value and square, and modelled as Gaussian. */
    internal open val moments: Numeric? get() = null

    /** What it must have in common with a model's feature of its name. */
    internal abstract fun described(): Feature

    /** What a value is, for people. */
    internal abstract fun wanted(): String

    /** What is wrong with a value that is there, behind the value itself; null where nothing is. */
    internal abstract fun wrong(value: Any?): String?

    /** Reads what a document, or a model that has a table, says of a feature by this name. */
    internal class Kind(val declared: Fields.(String) -> Feature, val modelled: Fields.(String) -> Feature)

    internal companion object {
        /** The kinds that documents may declare: the one table. */
        val KINDS: Map<String, Kind> = mapOf(
            "categorical" to Kind(
                { name -> readCategorical(name) },
                { name -> Categorical(name, texts("values", 1..MOST_VALUES), missing = true) },
            ),
            "continuous" to Kind(
                { name -> readBinned(name, switch("missing") != false, optionalWhole("bins", 2L..MOST_VALUES)?.toInt()) },
                { name -> readBinned(name, missing = true, whole("bins", 2..MOST_VALUES)) },
            ),
        )
    }
}

/** One of [values]. */
data class Categorical(override val name: String, val values: List<String>, override val missing: Boolean) : Feature() {
    private val declared by lazy { Declared(values) }
    override val size get() = values.size
    override val names get() = values

    /** Of a missing or undeclared value the index of `missing` where it is declared. */
    override fun indexOf(value: Any?): Int? = declared[value] ?: values.indexOf(MISSING).takeIf { it >= 0 }
    override fun described() = copy(missing = false)
    override fun wanted() = "one of ${listed(values)}"
    override fun wrong(value: Any?) = when {
        textOf(value) == null -> "is neither a text nor a number"
        else -> "is not declared".takeIf { declared[value] == null }
    }
}

/** A number, clipped to [low] and [high]; with [bins] it is discretised, in equal widths or between [edges]. */
data class Numeric(
    override val name: String,
    val low: Double,
    val high: Double,
    val bins: Int?,
    override val missing: Boolean,
    val edges: List<Double>? = null,
) : Feature() {
    override val size get() = bins ?: 2
    override val names: List<String>
        get() {
            val edges = listOf(low) + (1 until size).map(::edge) + high
            return edges.zipWithNext().mapIndexed { at, (from, to) ->
                "[${general(from)}, ${general(to)}${if (at < size - 1) ")" else "]"}"
            }
        }
    override val number get() = this
    override val moments get() = takeIf { bins == null }
    internal val span get() = high - low
    private fun edge(bin: Int): Double = edges?.get(bin) ?: (low + span * bin / size)
    internal fun clip(number: Double): Double = Math.min(Math.max(number, low), high)

    /** T = 2 (x - low) / (high - low) - 1 in [-1, 1], x clipped first. */
    internal fun scaled(number: Double): Double = Math.min(Math.max(2 * ((clip(number) - low) / span) - 1, -1.0), 1.0)

    /** The bin of a number, half-open. */
    override fun indexOf(value: Any?): Int? =
        numberOf(value)?.let { number -> (1 until size).firstOrNull { number < edge(it) }?.minus(1) ?: (size - 1) }
    override fun described() = copy(missing = false)
    override fun wanted() = "a number from $low to $high"
    override fun wrong(value: Any?) = "is no number".takeIf { numberOf(value) == null }
}

/** A declared feature, in a campaign of [classes] classes. */
internal fun readFeature(value: Any?, place: String, classes: Int): Feature = readObject(value, place) {
    val name = name("name")
    val kind = Feature.KINDS.getValue(choice("kind", Feature.KINDS.keys))
    optionalWhole("weight", 1L..MOST_WEIGHT)
    val feature = kind.declared(this, name)
    require(feature.cells * classes <= MOST_CELLS, "values", "are too many for one question")
    feature
}

private fun Fields.readCategorical(name: String): Feature {
    val values = declared("values", MOST_VALUES)
    val said = switch("missing")
    val listed = MISSING in values
    require(!(listed && said == true), "missing", "is one of the values; leave this out")
    require(!(switch("ordered") == true && listed), "ordered", "'missing' has no place in an order")
    return Categorical(name, values, said != false && !listed)
}

private fun Fields.readBinned(name: String, missing: Boolean, bins: Int?): Numeric {
    val feature = readNumeric(name, missing, bins)
    if (raw("edges") == null) return feature
    require(bins != null, "bins", "is missing; edges are those of bins")
    val edges = row("edges", feature.size + 1)
    val rise = edges.zipWithNext().all { (one, next) -> one < next }
    require(rise && edges.first() == feature.low && edges.last() == feature.high, "edges", "must rise from low to high")
    return feature.copy(edges = edges)
}

internal fun Fields.readNumeric(name: String, missing: Boolean, bins: Int?): Numeric {
    val feature = Numeric(name, number("low"), number("high"), bins, missing)
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
