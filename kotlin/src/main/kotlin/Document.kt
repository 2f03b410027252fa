package org.example.ldpbayes

import java.nio.ByteBuffer
import java.nio.charset.CharacterCodingException
import java.security.MessageDigest
import java.time.Instant
import java.util.Base64

/** What a campaign asks for. */
internal enum class Asks {
    /** Answers that a model is learned from. */
    MODEL,

    /** Answers that a projection is fitted from. */
    MOMENTS,

    /** How good a model is. */
    SCORE,

    /** What values people have, without a label. */
    STATISTICS,
}

/** A verified campaign: its id is the hash of its bytes, and the privacy loss of every question was recomputed. */
class Campaign private constructor(
    /** SHA-256 of the document's bytes, base64url. */
    val id: String,
    /** The document itself. */
    val document: ByteArray,
    authored: Authored,
    /** What a device may be asked. */
    internal val questions: List<Question>,
    internal val loss: Ratio,
) {
    /** For people: it comes from the server, and holds no ends of lines. */
    val title: String = authored.title

    /** For people, like [title]. */
    val purpose: String = authored.purpose

    /** Who answers for it, in the words of its author; null where nobody is named. */
    val operator: String? = authored.operator

    /** Where questions and complaints go. */
    val contact: String? = authored.contact

    /** The privacy notice, by https. */
    val privacyUrl: String? = authored.privacyUrl

    /** Days after its end until nothing is kept by which an answer could be found. */
    val keepDays: Int? = authored.keepDays

    /** The class to learn; without a label one class, the empty text. */
    val label: Label = authored.label

    /** The features that a record has. */
    val features: List<Feature> = authored.features

    /** What the campaign asks for. */
    internal val asks: Asks = authored.asks

    /** The features that questions are about: a projection's inputs are replaced by its outputs. */
    internal val asked: List<Feature> = authored.asked
    internal val projection: Projection? = authored.projection
    internal val evaluation: Evaluation? = authored.evaluation
    internal val answersAll: Boolean = authored.answersAll

    /** A device contributes to one campaign of a study at most. */
    val study: String? = authored.study

    /** Where it is a series: each device answers once in its life, in the window that it drew. */
    internal val windows: Windows? = authored.windows

    /** When it opens; null: it is open. A series opens with its first window. */
    val opens: Instant? = authored.opens

    /** When it closes; null: nobody knows. A series closes a week after its last window. */
    val closes: Instant? = authored.closes

    /** An upper bound of what one device loses, recomputed and rounded up. */
    val realisedEpsilon: Double = loss.doubleUp()

    /** Length of every device's upload. */
    internal val uploadBytes: Int by lazy { longestUpload(this) }

    /** The questions of which a device answers one each. */
    internal val pools: List<List<Question>> = if (answersAll) questions.groupBy { it.group }.values.toList() else listOf(questions)

    companion object {
        /**
         * The campaign of a document's bytes. [id], where it is known, must be their hash. Throws [LdpException]: `wrong-hash`,
         * `invalid-document`, `unknown-mechanism`, `invalid-parameters`, `loss-above-epsilon`; `crowd-unsupported`, `issuer-unsupported` and
         * `no-relay` for what this client cannot do.
         */
        fun parse(document: ByteArray, id: String? = null): Campaign {
            ensure(document.size <= LARGEST_DOCUMENT, INVALID_DOCUMENT) { "document: is longer than 4 MiB" }
            val hash = base64url(sha256(document))
            ensure(id == null || id == hash, "wrong-hash")
            return readObject(strictJson(utf8(document)), "") {
                val authored = Authored(this)
                val losses = HashMap<Mechanism, Ratio?>()
                val questions = list("questions", 1..2 * MOST_FEATURES + 1 + MOST_PRODUCTS)
                finish()
                val read = questions.mapIndexed { index, value -> readQuestion(value, index, authored, losses) }
                require(read.distinctBy { it.kind to it.group }.size == read.size, "questions", "must be different")
                val worst = read.groupBy({ it.group }, { losses.getValue(it.mechanism)!! }).values.map { it.max() }
                val loss = if (authored.answersAll) worst.fold(Ratio.ZERO, Ratio::plus) else worst.max()
                ensure(loss.within(authored.epsilon), "loss-above-epsilon") { "the questions lose more than the campaign's epsilon" }
                Campaign(hash, document, authored, read, loss)
            }
        }

        internal const val LARGEST_DOCUMENT = 4 shl 20
    }
}

/** All of a document but its questions. */
internal class Authored(fields: Fields) {
    val title: String
    val purpose: String
    val operator: String?
    val contact: String?
    val privacyUrl: String?
    val keepDays: Int?
    val label: Label
    val features: List<Feature>
    val asked: List<Feature>
    val epsilon: Double
    val answersAll: Boolean
    val asks: Asks
    val study: String?
    val projection: Projection?
    val evaluation: Evaluation?
    val windows: Windows?
    val opens: Instant?
    val closes: Instant?

    init {
        with(fields) {
            whole("version", 1..1)
            if ((raw("privacy") as? Map<*, *>)?.get("crowd") != null) {
                throw LdpException("crowd-unsupported", "it promises what mixed answers reveal, and this client cannot check that")
            }
            if (raw("issuer") != null) throw LdpException("issuer-unsupported", "its answers show tokens, and this client has none")
            if (raw("gateway") != null) throw LdpException("no-relay", "its answers go sealed by a relay, and this client seals none")
            title = name("title")
            purpose = text("purpose", LONGEST_PURPOSE) ?: ""
            operator = optionalName("operator")
            contact = optionalName("contact")
            privacyUrl = optionalName("privacy_url")?.also {
                require(PAGE.matches(it), "privacy_url", "must be an address such as https://example.org/privacy")
            }
            keepDays = optionalWhole("keep_days", 1L..MOST_KEPT_DAYS)?.toInt()
            val described = raw("label")
            asks = Asks.valueOf(choice("asks", ASKS, if (described == null) "statistics" else "model").uppercase())
            require((asks == Asks.STATISTICS) == (described == null), "asks", "must be statistics without a label, and only then")
            label = if (described == null) {
                Label("", listOf(""))
            } else {
                readObject(described, "label") {
                    optionalWhole("weight", 0L..MOST_WEIGHT)
                    Label(name("name"), declared("classes", MOST_CLASSES))
                }
            }
            val classes = label.classes.size
            features = readFeatures("features", 1..MOST_FEATURES, classes, listOf(label.name))
            require(asks != Asks.MOMENTS || features.all { it.number != null }, "features", "must be numbers")
            val plain = asks == Asks.MODEL || asks == Asks.STATISTICS
            study = if (plain) optionalName("study") else name("study")
            windows = raw("windows")?.let {
                require(plain, "windows", "must be absent here")
                readObject(it, "windows") { readWindows() }
            }
            val (epsilon, answers) = readObject(raw("privacy"), "privacy") {
                choice("discrete", listOf("auto", "de", "sue", "oue", "she", "the", "ss"), "auto")
                choice("continuous", listOf("auto", "laplace", "onebit", "sign"), "auto")
                optionalNumber("theta")?.let { require(it > 0 && it <= 1, "theta", "must be above 0 and at most 1") }
                if (asks == Asks.MOMENTS || windows != null) absent("release_every") else optionalWhole("release_every", 2L..MOST_RELEASE)
                positive("epsilon") to choice("answers", if (plain) listOf("one", "all") else listOf("one"), "one")
            }
            this@Authored.epsilon = epsilon
            answersAll = answers == "all"
            projection = raw("projection")?.let {
                require(asks == Asks.MODEL, "projection", "must be absent here")
                readObject(it, "projection") { readProjection(features, label, study != null) }
            }
            evaluation = if (asks == Asks.SCORE) readEvaluation(raw("evaluation"), label, features) else null.also { absent("evaluation") }
            if (windows != null) listOf("opens", "closes").forEach(::absent)
            opens = windows?.from ?: instant("opens")
            closes = windows?.run { opens(count).plusMillis(CLOSING_GRACE.inWholeMilliseconds) } ?: instant("closes")
            require(opens == null || closes == null || opens < closes, "closes", "must be after it opens")
            asked = features - projection?.inputs.orEmpty().toSet() + projection?.outputs.orEmpty()
            val values = asked.sumOf { it.cells * if (it.moments != null) 2 else 1 }
            val cells = (values + 1) * classes
            require(cells <= MOST_CAMPAIGN_CELLS, "features", "have too many values together")
            require(cells * (windows?.count ?: 1) <= MOST_CAMPAIGN_CELLS, "windows", "have too many cells together")
        }
    }

    fun feature(name: String?): Feature? = asked.find { it.name == name }

    private companion object {
        const val LONGEST_PURPOSE = 2000
        const val MOST_CAMPAIGN_CELLS = 1 shl 18
        const val MOST_RELEASE = 1L shl 40
        const val MOST_KEPT_DAYS = 36_500L
        val PAGE = Regex("https://[0-9A-Z_a-z][!#-?A-~]{0,191}")
        val ASKS = Asks.values().map { it.name.lowercase() }
    }
}

internal fun sha256(bytes: ByteArray): ByteArray = MessageDigest.getInstance("SHA-256").digest(bytes)
internal fun base64url(bytes: ByteArray): String = Base64.getUrlEncoder().withoutPadding().encodeToString(bytes)

/** A text of bytes that are UTF-8. Throws [LdpException] `invalid-document` for others. */
internal fun utf8(bytes: ByteArray): String = try {
    Charsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString()
} catch (error: CharacterCodingException) {
    throw LdpException(INVALID_DOCUMENT, "document: is not in UTF-8")
}
