// What people are told, to the letter: words.json.
package org.example.ldpbayes

private fun Vectors.rows(kind: String): List<Members> = listOfMembers(files.getValue("words")[kind])

internal fun Vectors.words() {
    for (row in rows("ledgers")) check("ledgers", row["name"]) { equal("${ledger(row)}", row["text"]) }
    rows("said").forEachIndexed { i, row -> check("said", i) { saidIn(row) } }
    for (row in rows("explained")) check("explained", row["document"]) { explainedIn(row) }
    for (row in rows("previews")) check("previews", row["document"]) { previewIn(row) }
}

private fun ledger(row: Members): Ledger = Ledger(
    listOfMembers(row["receipts"]).map {
        val fate = Fate.valueOf((it["fate"] as String).uppercase().replace('-', '_'))
        val questions = List((it["answers"] as Double).toInt()) { question -> question }
        val at = ((it["at"] as Double) * 1000).toLong()
        Receipt("id", it["title"] as String, null, it["epsilon"] as Double, questions, at, "url", fate, it["window"] as String)
    },
    row["cap"] as Double,
)

private fun Vectors.saidIn(row: Members) {
    val campaign = campaigns.getValue(row["document"])
    val question = campaign.questions[(row["question"] as Double).toInt()]
    equal(asked(campaign, question), row["asked"])
    equal(said(campaign, question, unhex(row["payload"] as String)), row["said"])
}

private fun Vectors.explainedIn(row: Members) {
    val explained = explained(campaigns.getValue(row["document"]), row["url"] as String)
    fun plain(sentence: Sentence) = mapOf(
        "key" to sentence.key,
        "parameters" to sentence.parameters.mapValues { (_, value) -> (value as? Int)?.toDouble() ?: value },
        "template" to sentence.template,
        "text" to "$sentence",
    )
    equal(explained.sentences.map(::plain), row["sentences"])
    equal(plain(explained.policy), row["policy"])
}

/** A record that is none is the compiler's business. */
private fun Vectors.previewIn(row: Members) {
    val record = row["record"] as? Map<*, *> ?: return equal(row["problems"], listOf(""))
    val preview = previewOf(campaigns.getValue(row["document"]), members(record), row["label"])
    equal(preview.problems.map { it.feature }, row["problems"])
    val questions = listOfMembers(row["questions"])
    equal(preview.questions.map { listOf(it.asked, it.truth) }, questions.map { listOf(it["asked"], it["truth"]) })
    equal(preview.questions.map { one -> one.said.map { it.first } }, questions.map { one -> pairs(one).map { it.first } })
    val chances = preview.questions.flatMap { one -> listOf(one.chance) + one.said.map { it.second } }
    val wanted = questions.flatMap { one -> listOf(one["chance"]) + pairs(one).map { it.second } }
    chances.zip(wanted) { chance, right -> check(Math.abs(chance - right as Double) <= 1e-12 * right) { "$chance, not $right" } }
    check("$preview".lines().size >= preview.questions.size)
}

private fun pairs(question: Members): List<Pair<Any?, Any?>> = (question["said"] as List<*>).map { (it as List<*>)[0] to it[1] }
