package org.example.ldpbayes

private const val LARGEST_VARIANCE = 1e300
private const val MOST_EDGES = 7

/** The kind of a model's feature that is asked as moments. */
private const val GAUSSIAN = "gaussian"

/** P(value | class) of one feature. */
internal sealed interface Likelihood {
    val feature: Feature

    /** ln P(value | class), null for a value that takes no part. */
    fun logarithm(value: Any?): ((Int) -> Double)?
    data class Table(override val feature: Feature, val shares: List<List<Double>>) : Likelihood {
        override fun logarithm(value: Any?) = feature.indexOf(value)?.let { index -> { c: Int -> StrictMath.log(shares[index][c]) } }
    }

    data class Gaussian(override val feature: Numeric, val mean: List<Double>, val variance: List<Double>) : Likelihood {
        override fun logarithm(value: Any?) = numberOf(value)?.let(feature::clip)?.let { x ->
            { c: Int -> (StrictMath.log(2 * Math.PI * variance[c]) + (x - mean[c]) * (x - mean[c]) / variance[c]) / -2 }
        }
    }
}

internal class Model(val label: Label, val prior: List<Double>, val likelihoods: List<Likelihood>, val projection: Projection?) {
    fun scores(record: Map<String, Any?>): List<Double> {
        val logPrior = prior.map(StrictMath::log)
        val sums = likelihoods.fold(logPrior) { sums, likelihood ->
            val value = Projection.valueOf(record, likelihood.feature.name, projection) { of, input -> of.mean[input] }
            likelihood.logarithm(value)?.let { logarithm -> sums.mapIndexed { c, sum -> sum + logarithm(c) } } ?: sums
        }
        return if (sums.any { it > Double.NEGATIVE_INFINITY }) sums else logPrior
    }
}

/** The index of the largest score; of equals the first. */
internal fun best(scores: List<Double>): Int = scores.indices.maxByOrNull { scores[it] }!!

/** Classifies records on the device with a published model. A feature without a usable value does not take part. */
class Classifier internal constructor(internal val model: Model) {
    /** The classes, in the order of the label. */
    val classes: List<String> get() = model.label.classes

    /** ln P(class) + sum of ln P(value | class) over the features, per class; ln P(class) where every class is impossible. */
    fun scores(record: Map<String, Any?>): List<Double> = model.scores(record)

    /** The most probable class; of equals the first declared. Where every class is impossible, by the prior. */
    fun predict(record: Map<String, Any?>): String = classes[best(scores(record))]

    /** P(class | record), by class. Where every class is impossible, the prior. */
    fun predictProba(record: Map<String, Any?>): Map<String, Double> {
        val scores = scores(record)
        val shares = scores.map { Math.exp(it - scores.max()) }
        return classes.zip(shares.map { it / shares.sum() }).toMap()
    }

    companion object {
        /** The classifier of a model document. Throws [LdpException] `invalid-model`. */
        fun parse(model: ByteArray): Classifier = parse(model, null)
        internal fun parse(model: ByteArray, label: Label?): Classifier =
            refusedAs("invalid-model") { Classifier(readModel(strictJson(utf8(model)), "", label, null)) }
    }
}

/** What an evaluation round asks about: a model, and where there are two classes the bins of its log odds. */
internal class Evaluation(val model: Model, private val edges: List<Double>?) {
    val places: Int get() = edges?.let { it.size + 1 } ?: model.prior.size

    /** The places in words: bins of the log odds, or what the model says. */
    val names: List<String>
        get() {
            val ends = edges?.map(::general) ?: return model.label.classes.map { "the model says $it" }
            val inner = ends.zipWithNext { low, high -> "($low, $high]" }
            return (listOf("up to ${ends.first()}") + inner + "above ${ends.last()}").map { "log odds $it" }
        }

    /** The number of edges that the log odds lie above; with more classes than two the class that the model says. */
    fun placeOf(scores: List<Double>): Int = edges?.count { scores[1] - scores[0] > it } ?: best(scores)
}

internal fun readEvaluation(value: Any?, label: Label, features: List<Feature>): Evaluation = readObject(value, "evaluation") {
    val model = readModel(raw("model"), "evaluation.model", label, features)
    val classes = label.classes.size
    val edges = if (classes > 2) null.also { absent("edges") } else list("edges", 1..MOST_EDGES).let { row("edges", it, it.size) }
    require(classes * classes <= MOST_CELLS, "model", "has too many classes")
    require(edges == null || (0.0 in edges && edges.zipWithNext().all { (a, b) -> a < b }), "edges", "must rise, and hold 0")
    raw("weights")?.let { weights ->
        val row = row("weights", weights, 2)
        val right = row.all { it == Math.rint(it) && it >= 0 && it <= MOST_WEIGHT } && row.any { it > 0 }
        require(right, "weights", "must be two integers, not both 0")
    }
    Evaluation(model, edges)
}

/** A model: of the campaign's [label], where that is known, and about nothing but the [declared] features, where they are. */
private fun readModel(value: Any?, place: String, label: Label?, declared: List<Feature>?): Model = readObject(value, place) {
    whole("version", 1..1)
    choice("kind", listOf("naive-bayes"))
    val own = Label(name("label"), texts("classes", 2..MOST_CLASSES))
    require(label == null || own == label, "label", "is not the campaign's")
    val prior = row("prior", own.classes.size)
    requireShares("prior", prior)
    val likelihoods = list("features", 0..MOST_FEATURES)
        .mapIndexed { at, one -> readLikelihood(one, place("features[$at]"), own.classes.size) }
    val names = listOf(own.name) + likelihoods.map { it.feature.name }
    require(names.toSet().size == names.size, "features", "must have different names")
    val training = raw("training")
    require(training is Map<*, *> || training in listOf(null, false, 0.0, "", emptyList<Any?>()), "training", "must be an object")
    val projection = raw("projection")?.let { projected ->
        readObject(projected, place("projection")) {
            val inputs = readFeatures("features", 1..MOST_FEATURES, own.classes.size, listOf(own.name))
            readProjection(inputs, own, inStudy = true)
        }
    }
    if (declared != null) {
        val outputs = projection?.outputs.orEmpty().map { it.name }
        val used = likelihoods.map { it.feature }.filter { it.name !in outputs } + projection?.inputs.orEmpty()
        require(declared.map { it.described() }.containsAll(used.map { it.described() }), "features", "must be the campaign's")
    }
    Model(own, prior, likelihoods, projection)
}

private fun readLikelihood(value: Any?, place: String, classes: Int): Likelihood = readObject(value, place) {
    val name = name("name")
    val kind = Feature.KINDS[choice("kind", Feature.KINDS.keys + GAUSSIAN)]
    if (kind != null) {
        readTable(kind.modelled(this, name), classes)
    } else {
        val variance = row("variance", classes)
        require(variance.all { it > 0 && it <= LARGEST_VARIANCE }, "variance", "must be above 0 and at most $LARGEST_VARIANCE")
        Likelihood.Gaussian(readNumeric(name, missing = true, null), row("mean", classes), variance)
    }
}

private fun Fields.readTable(feature: Feature, classes: Int): Likelihood {
    val table = list("likelihood", feature.size..feature.size).map { row("likelihood", it, classes) }
    for (c in 0 until classes) requireShares("likelihood", table.map { it[c] })
    return Likelihood.Table(feature, table)
}

private fun Fields.requireShares(name: String, shares: List<Double>) =
    require(shares.all { it >= 0 } && Math.abs(shares.sum() - 1) <= 1e-6, name, "must be at least 0 and add up to 1")
