// Everything that a device would say of a record: for each question the truth, and how likely each answer is. Nothing is drawn, stored
// or sent; what it returns shows values of the record, and must not be sent anywhere.
package org.example.ldpbayes

private const val MOST_SHOWN = 8
private const val TWO_64 = 18_446_744_073_709_551_616.0

/**
 * One question of a campaign, and what would be said to it. [chance] is the probability that this device is [asked] it. [truth] is what
 * is true of the record, null where no label is given, and where the record has no usable value of a feature that is complete: a random
 * one is answered then. [said] are what can be said and how likely an answer names it, none without a truth: what says one thing adds
 * up to 1, a set names several, and of noisy numbers all that is sure is what is added to them.
 */
class PreviewedQuestion internal constructor(
    val asked: String,
    val chance: Double,
    val truth: String?,
    val said: List<Pair<String, Double>>,
)

/** The [problems] of a record, and every question of the campaign, in its order. As a text it is a table. */
class Preview internal constructor(val problems: List<Problem>, val questions: List<PreviewedQuestion>) {
    override fun toString(): String {
        val lines = ArrayList<String>()
        problems.mapTo(lines) { "! ${plain("${it.feature}: ${it.wrong}; ${it.right}")}" }
        for (one in questions) {
            val truth = one.truth?.let { "what is true is ${plain(it)}" } ?: "what is true is not known"
            lines += "${plain(one.asked)}, asked with probability ${rounded(one.chance)}: $truth"
            val shown = one.said.sortedByDescending { it.second }.take(MOST_SHOWN)
            shown.mapTo(lines) { (words, chance) -> "  ${rounded(chance)}  ${plain(words)}" }
            if (one.said.size > MOST_SHOWN) lines += "         and ${one.said.size - MOST_SHOWN} more"
        }
        return lines.joinToString("\n")
    }

    private fun rounded(chance: Double): String = "%.3f".format(java.util.Locale.ROOT, chance)
}

/** A coin was asked for, so that there is no one truth. */
private object Drawn : RuntimeException() {
    private fun readResolve(): Any = Drawn
    override fun fillInStackTrace(): Throwable = this
}

/** A preview of a record of a class, null where that is not known. Throws nothing, whatever the record holds. */
internal fun previewOf(campaign: Campaign, record: Map<String, Any?>, label: Any?): Preview {
    val classIndex = campaign.label.indexOf(label)
    val weights = campaign.pools.flatMap { pool ->
        pool.map { it.index to it.weight / pool.sumOf { one -> one.weight.toLong() }.toDouble() }
    }
    val chances = weights.toMap()
    val questions = campaign.questions.map { question ->
        val (truth, said) = try {
            classIndex?.let { saidOf(campaign, question, record, it) }
        } catch (error: Drawn) {
            null // a value is drawn for the one that is not there
        } ?: (null to emptyList())
        PreviewedQuestion(asked(campaign, question), chances.getValue(question.index), truth, said)
    }
    return Preview(problems(campaign, record, label), questions)
}

/** The truth in words, and what can be said with its probability. */
private fun saidOf(
    campaign: Campaign,
    question: Question,
    record: Map<String, Any?>,
    label: Int,
): Pair<String, List<Pair<String, Double>>> {
    val mechanism = question.mechanism
    val reading = Reading(campaign, question, record, label, Coins { throw Drawn })
    if (question.encoding == Encoding.INDEX) {
        val (index) = reading.item() as Item.Index
        val said =
            if (mechanism.marking == null) {
                listOf(added(campaign, question, index, 1.0) to 1.0)
            } else {
                cells(campaign, question, mapOf(index to 1.0))
            }
        return cellOf(campaign, question, index) to said
    }
    val quantity = reading.quantity()
    val truth = truthOf(campaign, question, label, reading.numbers())
    val cell = if (question.kind == QuestionKind.PRODUCT) 0 else label
    val value = ((quantity ?: 0.0) * UNIT).toLong()
    if (question.encoding == Encoding.SIGN) {
        val first = signsOf(campaign, question) * cell
        val upper = (value + UNIT).toDouble() / (2 * UNIT)
        val lower = (UNIT - value).toDouble() / (2 * UNIT)
        val law = if (quantity == null) mapOf(first + 2 to 1.0) else mapOf(first to lower, first + 1 to upper)
        return truth to cells(campaign, question, law)
    }
    if (mechanism !is OneBit) return truth to listOf(added(campaign, question, cell, value.toDouble() / UNIT) to 1.0)
    return truth to (0 until mechanism.domainSize).flatMap { one ->
        val threshold = mechanism.threshold(if (one == cell) value else 0)
        val chances = listOf((0uL - threshold).toDouble(), threshold.toDouble())
        chances.mapIndexed { end, chance -> endOf(campaign, question, one, end) to chance / TWO_64 / mechanism.domainSize }
    }
}

/** Every cell, with the probability that an answer marks it, for a true one that is drawn by [law]. */
private fun cells(campaign: Campaign, question: Question, law: Map<Int, Double>): List<Pair<String, Double>> {
    val marking = question.mechanism.marking!!
    val p = marking.p.toDouble() / TWO_64
    return (0 until question.mechanism.domainSize).map { cell ->
        val isTrue = law[cell] ?: 0.0
        cellOf(campaign, question, cell) to p * isTrue + marking.q * (1 - isTrue)
    }
}
