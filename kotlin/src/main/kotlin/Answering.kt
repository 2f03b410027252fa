// From a record to perturbed reports: the one place where a person's data meets the coins. The label is looked up first, then the
// question is drawn, and only then is the record read, only where it is asked about.
package org.example.ldpbayes

private const val SECRET_BYTES = 32
internal fun makeSecret(): ByteArray = randomBytes(SECRET_BYTES)

/**
 * The reports of one device, which together satisfy the campaign's epsilon-LDP: one, or with `answers: "all"` one of every group.
 * Missing, undeclared and unreadable values are answered as the campaign says of a missing one; [DeviceCampaign.preview] finds them. [coins] other
 * than the platform's are for tests. Throws [LdpException] `undeclared-label`, `invalid-secret` or `no-randomness`; nothing of the
 * record was then read.
 */
internal fun perturb(
    campaign: Campaign,
    record: Map<String, Any?>,
    label: Any? = null,
    secret: ByteArray = makeSecret(),
    coins: Coins = Coins.system(),
): List<Report> {
    val classIndex = campaign.label.indexOf(label)
        ?: throw LdpException("undeclared-label", "${campaign.label.name} must be one of ${campaign.label.classes.joinToString()}")
    ensure(secret.size == SECRET_BYTES, "invalid-secret")
    val first = drawWindow(campaign, secret) * campaign.questions.size
    return drawQuestions(campaign, secret).map { question ->
        val item = Reading(campaign, question, record, classIndex, coins).item()
        Report(first + question.index, reportId(secret, campaign, question.group), question.mechanism.perturb(item, coins), item)
    }
}

/** What a record of class [label] answers to [question], before the mechanism. */
internal class Reading(
    private val campaign: Campaign,
    private val question: Question,
    private val record: Map<String, Any?>,
    private val label: Int,
    private val coins: Coins,
) {
    private val classes = campaign.label.classes.size
    fun item(): Item = when (question.kind) {
        QuestionKind.LABEL -> Item.Index(label)
        QuestionKind.PAIR -> Item.Index(index(question.feature) * classes + label)
        QuestionKind.JOINT -> Item.Index(index(question.feature) * feature(question.other).cells + index(question.other))
        QuestionKind.RIGHT -> Item.Index(if (best(campaign.evaluation!!.model.scores(record)) == label) 1 else 0)
        QuestionKind.SCORE -> campaign.evaluation!!.let { Item.Index(it.placeOf(it.model.scores(record)) * classes + label) }
        QuestionKind.VALUE, QuestionKind.SQUARE -> encoded(label, classes, quantity())
        QuestionKind.PRODUCT -> encoded(0, 1, quantity())
    }

    /** A moment of its cell among [cells], or one of the cell's signs: a stochastic bit, and 2 for what is missing. */
    private fun encoded(cell: Int, cells: Int, quantity: Double?): Item {
        val value = ((quantity ?: 0.0) * UNIT).toLong()
        if (question.encoding == Encoding.MOMENT) return Item.Moment(cell, value)
        val sign = if (quantity == null) {
            2
        } else if (coins.sign(value)) {
            1
        } else {
            0
        }
        return Item.Index(question.mechanism.domainSize / cells * cell + sign)
    }

    /** The quantity asked for, in [-1, 1]; null where it is missing and may be. */
    fun quantity(): Double? {
        val t = scaled(question.feature)
        if (question.kind == QuestionKind.VALUE) return t
        // The square of a value in [-1, 1], over the whole of [-1, 1] again.
        if (question.kind == QuestionKind.SQUARE || question.other == question.feature) return t?.let { 2 * (it * it) - 1 }
        val other = scaled(question.other)
        return if (t == null || other == null) null else t * other
    }

    /** The clipped numbers behind a question about moments, null for one that is not there. */
    fun numbers(): List<Double?> = listOfNotNull(question.feature, question.other).map { name ->
        val feature = feature(name).number!!
        numberOf(value(feature))?.let(feature::clip)
    }

    private fun feature(name: String?): Feature = campaign.asked.first { it.name == name }
    private fun scaled(name: String?): Double? {
        val feature = feature(name).number!! // no other has questions about moments
        return numberOf(value(feature))?.let(feature::scaled) ?: if (feature.missing) null else randomT()
    }

    /** The index of a value: where it is missing that after the last, or random if none may be. */
    private fun index(name: String?): Int = feature(name).let { feature ->
        feature.indexOf(value(feature)) ?: if (feature.missing) feature.size else coins.below(feature.size)
    }

    /** A projection's missing input stands at its mean, or is random if none may be. */
    private fun value(feature: Feature): Any? = Projection.valueOf(record, feature.name, campaign.projection) { projection, i ->
        val input = projection.inputs[i]
        if (input.missing) projection.mean[i] else input.low + (randomT() + 1) * (input.span / 2)
    }

    /** A uniformly random multiple of 2^-52 in [-1, 1]. */
    private fun randomT(): Double = (coins.below(2 * UNIT + 1) - UNIT).toDouble() / UNIT
}
