package org.example.ldpbayes

/** What a question is about. */
internal enum class QuestionKind {
    /** The class alone. */
    LABEL,

    /** A value with the class. */
    PAIR,

    /** A number, by class. */
    VALUE,

    /** The square of a number, by class. */
    SQUARE,

    /** The product of two numbers. */
    PRODUCT,

    /** The values of two features, in a campaign without a label. */
    JOINT,

    /** Whether a model says the record's class. */
    RIGHT,

    /** Where a model's score lies, with the class. */
    SCORE,
}

/** The form of what is perturbed. */
internal enum class Encoding { INDEX, SIGN, MOMENT }

/**
 * One question of a campaign. With `answers: "all"` a device answers one of each [group], else one of all; [weight] says how often
 * it is drawn.
 */
internal data class Question(
    val index: Int,
    val kind: QuestionKind,
    val feature: String?,
    val other: String?,
    val group: Int,
    internal val encoding: Encoding,
    val mechanism: Mechanism,
    val epsilon: Double,
    val weight: Int,
)

private const val INVALID_PARAMETERS = "invalid-parameters"
private const val MOST_DRAWN = 1 shl 30
internal const val MOST_PRODUCTS = 8192
private val DIGITS = Regex("[1-9][0-9]{0,39}")
private val KINDS = QuestionKind.values().map { it.name.lowercase() }
private val ENCODINGS = Encoding.values().map { it.name.lowercase() }

/** Reads a question against the schema beside it; [losses] has the loss of every mechanism that was met. */
internal fun readQuestion(value: Any?, index: Int, authored: Authored, losses: MutableMap<Mechanism, Ratio?>): Question {
    lateinit var question: (Mechanism) -> Question
    lateinit var name: String
    lateinit var parameters: Map<*, *>
    var domainSize = 0
    var epsilon = 0.0
    readObject(value, "questions[$index]") {
        val kind = QuestionKind.valueOf(choice("kind", KINDS).uppercase())
        val encoding = Encoding.valueOf(choice("encoding", ENCODINGS).uppercase())
        val both = kind == QuestionKind.PRODUCT || kind == QuestionKind.JOINT
        val groups = if (authored.evaluation == null) authored.asked.size else 0
        val group = whole("group", if (both) groups + 1..groups + MOST_PRODUCTS else 0..groups)
        // The label (group 0) names nothing, a product and a joint two features, any other question the feature of its group.
        val (feature, other) = text("feature") to text("other")
        val right = if (both) {
            authored.feature(feature) != null && authored.feature(other) != null
        } else {
            feature == authored.asked.getOrNull(group - 1)?.name && other == null
        }
        require(right, "feature", "is not what the group is about")
        val cells = cellsOf(kind, encoding, authored, authored.feature(feature), authored.feature(other))
        domainSize = whole("domain_size", 1..MOST_CELLS)
        require(domainSize == cells, "domain_size", "must be $cells for this kind, encoding and feature")
        name = name("mechanism")
        require(Mechanism.TABLE[name]?.encodings?.contains(encoding) != false, "mechanism", "$name does not answer this encoding")
        epsilon = number("epsilon")
        val weight = whole("weight", 1..MOST_DRAWN)
        parameters = raw("parameters") as? Map<*, *> ?: refuse("parameters", "must be an object")
        question = { Question(index, kind, feature, other, group, encoding, it, epsilon, weight) }
    }
    val mechanism = readMechanism(name, domainSize, parameters)
    val loss = losses.getOrPut(mechanism) { mechanism.loss() }
    ensure(loss != null, INVALID_PARAMETERS) { "questions[$index]: these numbers make no mechanism" }
    ensure(epsilon > 0 && loss!!.within(epsilon), "loss-above-epsilon") { "questions[$index]: loses more than its epsilon" }
    return question(mechanism)
}

/** The cells of a question of this shape; null for a shape that does not exist. */
private fun cellsOf(kind: QuestionKind, encoding: Encoding, authored: Authored, feature: Feature?, other: Feature?): Int? {
    val classes = authored.label.classes.size
    val moments = authored.asks == Asks.MOMENTS
    val alone = authored.asks == Asks.STATISTICS
    val number = feature != null && (moments || feature.moments != null)
    if (encoding == Encoding.INDEX) {
        return when (kind) {
            QuestionKind.RIGHT -> 2.takeIf { authored.evaluation != null }
            QuestionKind.SCORE -> authored.evaluation?.let { it.places * classes }
            QuestionKind.PAIR -> feature?.takeUnless { number }?.let { it.cells * classes }
            QuestionKind.JOINT -> feature!!.cells.times(other!!.cells).takeIf { alone && !number && other.moments == null }
            QuestionKind.LABEL -> classes.takeIf { feature == null && !alone && authored.evaluation == null }
            else -> null
        }
    }
    val size = when (kind) {
        QuestionKind.VALUE -> classes
        QuestionKind.SQUARE -> classes.takeUnless { moments }
        QuestionKind.PRODUCT -> 1.takeIf { moments }
        else -> null
    }.takeIf { number } ?: return null
    // A sign has a third place where something may be missing; a moment, which has none, is not asked for then.
    val open = feature?.missing == true || other?.missing == true
    return if (encoding == Encoding.SIGN) (if (open) 3 else 2) * size else size.takeUnless { open }
}

/** Its numbers are positive integers, each a number or decimal digits in the document. */
private fun readMechanism(name: String, domainSize: Int, parameters: Map<*, *>): Mechanism {
    val known = Mechanism.TABLE[name] ?: throw LdpException("unknown-mechanism", name)
    fun invalid(): Nothing = throw LdpException(INVALID_PARAMETERS, "$name takes ${known.numbers.joinToString()}")
    if (parameters.size != known.numbers.size) invalid()
    val numbers = known.numbers.map { number ->
        when (val value = parameters[number]) {
            is String -> value.takeIf(DIGITS::matches)?.toBigInteger()
            is Double -> value.toLong().takeIf { it.toDouble() == value && it in 1 until (1L shl 53) }?.toBigInteger()
            else -> null
        }?.takeUnless { number in PROBABILITIES && it >= ONE } ?: invalid()
    }
    return known.make(domainSize, numbers)
}

private val PROBABILITIES = setOf("p", "q")

/** The questions of the device with this secret: the same at every call, whatever failed after the last one. */
internal fun drawQuestions(campaign: Campaign, secret: ByteArray): List<Question> = campaign.pools.map { pool ->
    val coins = Coins.keyed(secret, "question".toByteArray() + slot(campaign, pool[0].group))
    var ticket: Long = coins.below(pool.sumOf { it.weight.toLong() })
    pool.first {
        ticket -= it.weight
        ticket < 0
    }
}

/** The one window of a series in which the device with this secret answers, each as likely; 0 where there are none. */
internal fun drawWindow(campaign: Campaign, secret: ByteArray): Int =
    Coins.keyed(secret, "window${campaign.id}".toByteArray()).below(campaign.windows?.count ?: 1)
