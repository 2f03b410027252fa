// Words for people: the question, an answer's claim, the truth of a record, and a campaign's promise. All of it is a function of the
// campaign's document, the same to the letter in every client (protocols/vectors/words.json).
package org.example.ldpbayes

import java.math.BigDecimal
import java.math.BigInteger
import java.math.MathContext
import java.math.RoundingMode

private const val MOST_NAMED = 3
private const val PEOPLE = 100
private val ESCAPED = setOf(
    CharCategory.CONTROL,
    CharCategory.FORMAT,
    CharCategory.SURROGATE,
    CharCategory.PRIVATE_USE,
    CharCategory.LINE_SEPARATOR,
    CharCategory.PARAGRAPH_SEPARATOR,
    CharCategory.SPACE_SEPARATOR,
).map { it.value }

/**
 * What an app says, in a form that it translates: the [key]'s own words in another language take the same [parameters] as [template],
 * the English ones, does by `{name}`. As a text it is English.
 */
class Sentence internal constructor(val key: String, val parameters: Map<String, Any>, val template: String) {
    override fun toString(): String = NAME.replace(template) { "${parameters.getValue(it.groupValues[1])}" }

    private companion object {
        val NAME = Regex("\\{([a-z_]+)\\}")
    }
}

/**
 * Two [sentences] for the person who is asked, one more for each of operator, contact, privacy notice and days of keeping that the
 * campaign has, and a paragraph for the app's privacy [policy].
 */
class Explanation internal constructor(val sentences: List<Sentence>, val policy: Sentence) {
    override fun toString(): String = sentences.joinToString(" ")
}

private const val ANSWERS =
    "This device answers {answers} of {questions} questions about {label}, once, and changes what it says at random " +
        "before anything leaves it: the privacy loss is at most epsilon {epsilon}."
private const val HIDDEN = "Where {people} of many people with your answer would say what your device says, at least {others} of as many " +
    "people with any other answer would say it, too."
private const val BARE = "Where {people} of many people with your answer would say what your device says, fewer than 1 of as many people " +
    "with some other answer may say it, too: the noise hides little."
private const val POLICY =
    "If you agree, this app takes part once in \"{title}\". Your device answers {answers} of {questions} questions about " +
        "{label}, drawn by lot, changes what it says at random (local differential privacy with epsilon {epsilon}) and " +
        "sends that to {url}, which sees the network address that it comes from, as with any request. " +
        "What is sent may be true of you or not, and nobody can tell for certain. It carries a " +
        "random number, which tells it from others, no name and no identifier of you or the device. You may withdraw at " +
        "any time: what has not left is deleted."

private const val KEPT = "Days after its end until nothing is kept by which your answer could be found: at most {keep_days}."

/** What a campaign's noise means, in its own numbers; answers go to [url]. */
internal fun explained(campaign: Campaign, url: String): Explanation {
    val told = mapOf(
        "answers" to campaign.pools.size,
        "questions" to campaign.questions.size,
        "label" to plain(campaign.label.name.ifEmpty { campaign.title }),
        "epsilon" to written(campaign.realisedEpsilon),
    )
    // A report that somebody sends with probability P, anybody else sends with probability P exp(-epsilon) or more.
    val others = Math.floor(PEOPLE * StrictMath.exp(-campaign.realisedEpsilon)).toInt()
    val noise =
        if (others > 0) {
            Sentence("hidden", mapOf("people" to PEOPLE, "others" to others), HIDDEN)
        } else {
            Sentence("bare", mapOf("people" to PEOPLE), BARE)
        }
    val policy = Sentence("policy", told + mapOf("title" to plain(campaign.title), "url" to url), POLICY)
    return Explanation(listOf(Sentence("answers", told, ANSWERS), noise) + forPeople(campaign), policy)
}

/** Members of a document that its author may leave out, each in a sentence. */
private fun forPeople(campaign: Campaign): List<Sentence> = with(campaign) {
    listOfNotNull(
        operator?.let { Sentence("operator", mapOf("operator" to plain(it)), "{operator} is responsible for this.") },
        contact?.let { Sentence("contact", mapOf("contact" to plain(it)), "Questions and complaints go to {contact}.") },
        privacyUrl?.let { Sentence("privacy_url", mapOf("privacy_url" to it), "The privacy notice: {privacy_url}") },
        keepDays?.let { Sentence("keep_days", mapOf("keep_days" to it), KEPT) },
    )
}

/** What a question is about. */
internal fun asked(campaign: Campaign, question: Question): String {
    val label = campaign.label.name
    return when (question.kind) {
        QuestionKind.RIGHT -> "whether the model is right about $label"
        QuestionKind.SCORE -> "what the model says of $label, and $label"
        QuestionKind.LABEL -> label
        QuestionKind.VALUE, QuestionKind.SQUARE -> beside("${question.feature} (${question.kind.name.lowercase()})", label)
        QuestionKind.PAIR, QuestionKind.PRODUCT, QuestionKind.JOINT -> beside(question.feature!!, question.other ?: label)
    }
}

/** With the label, where there is one. */
private fun beside(words: String, label: String) = if (label.isEmpty()) words else "$words and $label"

/** What a payload claims; it is noise as well as truth, and nobody can tell which. */
internal fun said(campaign: Campaign, question: Question, payload: ByteArray): String {
    val mechanism = question.mechanism
    if (mechanism is OneBit) {
        val claim = endOf(campaign, question, number(payload.copyOf(payload.size - 1)), payload.last().toInt())
        return "$claim (what lies there says so with probability ${hundredths(mechanism.p)})"
    }
    val marking = mechanism.marking ?: return "${mechanism.domainSize} numbers, of which noise is the most"
    val cells = mechanism.marked(payload)
    val named = cells.take(MOST_NAMED).joinToString("; ") { cellOf(campaign, question, it) }
    val chance = "with probability ${hundredths(marking.p)}"
    if (marking.isOne) return "$named (true $chance)"
    val more = (if (cells.isEmpty()) "" else ": ") + named + if (cells.size > MOST_NAMED) "; ..." else ""
    return "${cells.size} of ${mechanism.domainSize} answers are marked$more (the true one is among them $chance)"
}

/** The name of a cell of a question whose answers are cells. */
internal fun cellOf(campaign: Campaign, question: Question, cell: Int): String {
    val classes = campaign.label.classes
    if (question.kind == QuestionKind.LABEL) return classes[cell]
    if (question.kind == QuestionKind.RIGHT) return if (cell == 1) "right" else "wrong"
    if (question.encoding == Encoding.SIGN) return signsOf(campaign, question).let { endOf(campaign, question, cell / it, cell % it) }
    fun names(feature: String?) = campaign.asked.first { it.name == feature }.cellNames
    if (question.kind == QuestionKind.JOINT) {
        return names(question.other).let { "${names(question.feature)[cell / it.size]}, ${it[cell % it.size]}" }
    }
    val names = campaign.evaluation?.names ?: names(question.feature)
    return at(campaign, question, cell % classes.size, names[cell / classes.size])
}

/** Places of a `sign` question for each class (of a product: in all): 2, and a last one if it may be missing. */
internal fun signsOf(campaign: Campaign, question: Question): Int =
    question.mechanism.domainSize / if (question.kind == QuestionKind.PRODUCT) 1 else campaign.label.classes.size

/** An end of the range (0 the lower, 1 the upper), or that there is no value (2), with the class of a cell. */
internal fun endOf(campaign: Campaign, question: Question, cell: Int, end: Int): String =
    at(campaign, question, cell, listOf("the lower end", "the upper end", "missing")[end])

/** With the class of a cell; a product is of none. */
private fun at(campaign: Campaign, question: Question, cell: Int, words: String): String =
    if (question.kind == QuestionKind.PRODUCT || campaign.label.name.isEmpty()) words else "$words, ${campaign.label.classes[cell]}"

/** The truth behind a question about moments: its feature's number, or those of a product's two. */
internal fun truthOf(campaign: Campaign, question: Question, label: Int, numbers: List<Double?>): String {
    if (null in numbers) return at(campaign, question, label, "missing")
    val words = numbers.joinToString(" times ") { general(it!!) }
    return at(campaign, question, label, if (question.kind == QuestionKind.SQUARE) "$words squared" else words)
}

/** What a noisy vector says: its one number that is not 0, and the scale of the noise that is added to each. */
internal fun added(campaign: Campaign, question: Question, cell: Int, value: Double): String {
    val named = if (question.encoding == Encoding.MOMENT) campaign.label.classes[cell] else cellOf(campaign, question, cell)
    val others = question.mechanism.domainSize - 1
    val parts = listOfNotNull(
        if (question.kind == QuestionKind.PRODUCT || named.isEmpty()) general(value) else "${general(value)} at $named",
        if (others > 0) "0 at $others others" else null,
        "noise of scale ${general(question.mechanism.noise!!)} is added to each",
    )
    return parts.joinToString("; ")
}

/**
 * A server's text on one line: cursor moves, line breaks, writing directions and every space but the usual one are `\u` and four digits
 * for each of UTF-16's units; a quotation mark is a single one.
 */
internal fun plain(text: String): String = buildString {
    for (point in text.codePoints()) {
        if (point == '"'.code) {
            append('\'')
        } else if (point != ' '.code && Character.getType(point) in ESCAPED) {
            for (unit in Character.toChars(point)) append("\\u%04x".format(unit.code))
        } else {
            appendCodePoint(point)
        }
    }
}

/** The shortest decimals that mean this double, rounded up to four. */
internal fun written(epsilon: Double): String {
    val rounded = shortest(epsilon).setScale(4, RoundingMode.CEILING)
    return if (rounded.signum() == 0) "0" else rounded.stripTrailingZeros().toPlainString()
}

/** A number with six digits, as C's `%g` writes it. */
internal fun general(number: Double): String {
    if (number == 0.0) return "0"
    val rounded = BigDecimal(number).round(MathContext(6, RoundingMode.HALF_EVEN)).stripTrailingZeros()
    val exponent = rounded.precision() - rounded.scale() - 1
    if (exponent in -4..5) return rounded.toPlainString()
    val digits = rounded.movePointLeft(exponent).toPlainString()
    return "${digits}e${if (exponent < 0) "-" else "+"}%02d".format(Math.abs(exponent))
}

/** A probability of so many 2^64ths in hundredths, halves up. */
private fun hundredths(probability: ULong): String {
    val hundredths = (BigInteger("$probability") * BigInteger.valueOf(200) + ONE) / ONE.shiftLeft(1)
    return "%d.%02d".format(java.util.Locale.ROOT, hundredths.toInt() / 100, hundredths.toInt() % 100)
}

private fun number(payload: ByteArray): Int = payload.foldRight(0) { byte, sum -> (sum shl 8) + (byte.toInt() and 255) }
