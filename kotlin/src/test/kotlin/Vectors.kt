// Every test vector of protocols/vectors, accepted and refused. Prints how many cases of each kind passed.
@file:Suppress("UNCHECKED_CAST")

package org.example.ldpbayes

import java.io.File
import java.math.BigDecimal
import java.nio.ByteBuffer
import java.nio.ByteOrder

internal typealias Members = Map<String, Any?>

internal fun members(value: Any?): Members = value as Members

internal fun listOfMembers(value: Any?): List<Members> = (value as List<*>).map(::members)

/** Coins from hexadecimal words, and how many were taken. */
internal class Script(private val words: List<*>) {
    var taken = 0
    val coins = Coins {
        check(taken < words.size) { "more words were asked for than scripted" }
        (words[taken++] as String).toULong(16)
    }
}

/** A record's type is the compiler's business; where JSON holds none, it is refused as the other clients refuse it. */
internal fun perturbed(campaign: Campaign, record: Any?, label: Any?, secret: ByteArray, coins: Coins): List<Report> =
    perturb(campaign, record as? Members ?: noRecord(campaign, label), label, secret, coins)

internal fun noRecord(campaign: Campaign, label: Any?): Members =
    throw LdpException(if (campaign.label.indexOf(label) == null) "undeclared-label" else "not-a-record")

internal class Vectors(folder: File) {
    val files = listOf("values", "documents", "reports", "uploads", "training", "directories", "answers", "words", "crowd")
        .associateWith { members(strictJson(utf8(File(folder, "$it.json").readBytes()))) }
    val checked = LinkedHashMap<String, Int>()
    val campaigns = HashMap<Any?, Campaign>()

    fun check(kind: String, name: Any?, test: () -> Unit) {
        try {
            test()
        } catch (error: Exception) {
            throw IllegalStateException("$kind ($name): $error", error)
        }
        checked[kind] = (checked[kind] ?: 0) + 1
    }

    fun equal(found: Any?, wanted: Any?) = check(found == wanted) { "$found, not $wanted" }

    fun refuses(code: Any?, action: () -> Unit) {
        val found = try {
            action()
            "accepted"
        } catch (error: LdpException) {
            error.code
        }
        equal(found, code)
    }

    fun near(scores: List<Double>, wanted: Any?) = scores.zip(wanted as List<*>) { score, right ->
        val other = right as Double? ?: Double.NEGATIVE_INFINITY
        check(score == other || Math.abs(score - other) <= 1e-9 * Math.abs(other)) { "score $score, not $other" }
    }

    fun values() {
        val cases = files.getValue("values")
        val features = listOfMembers(cases["features"])
        (cases["cases"] as List<*>).map(::members).forEachIndexed { i, case ->
            val written = case["value"]
            val (type, text) = (written as? Map<*, *>)?.entries?.singleOrNull()?.let { it.key to it.value } ?: (null to null)
            if (type == "fraction") return@forEachIndexed // Kotlin has none
            val value: Any? = when (type) {
                "integer" -> (text as String).toBigInteger()

                // What Java has no decimal for is a double there.
                "decimal" -> if ((text as String).contains(Regex("[a-z]"))) double(text) else BigDecimal(text)

                "double" -> double(text as String)

                else -> written
            }
            check("values", "$i: $written") {
                equal(textOf(value), case["text"])
                equal(numberOf(value)?.plus(0.0), (case["number"] as? String)?.let(::double) ?: case["number"])
                for (described in features) {
                    val feature = readFeature(described - "indices", "", 2)
                    equal(feature.indexOf(value)?.toDouble(), (described["indices"] as List<*>)[i])
                }
                val label = members(cases["label"])
                equal(Label("", label["classes"] as List<String>).indexOf(value)?.toDouble(), (label["indices"] as List<*>)[i])
            }
        }
    }

    fun double(text: String): Double =
        if (text.endsWith("NaN", true)) Double.NaN else text.replace(Regex("(?i)inf(inity)?"), "Infinity").toDouble()

    fun documents() {
        val documents = files.getValue("documents")
        for (case in listOfMembers(documents["accepted"])) {
            check("documents", case["name"]) {
                val campaign = Campaign.parse((case["document"] as String).toByteArray(), case["id"] as String)
                campaigns[case["name"]] = campaign
                val off = campaign.realisedEpsilon / case["realised_epsilon"] as Double - 1
                check(off >= 0 && off < 1e-15) { "loses ${campaign.realisedEpsilon}" }
            }
        }
        for (case in listOfMembers(documents["alike"])) {
            check("documents alike", case["name"]) {
                equal(Campaign.parse((case["document"] as String).toByteArray()).questions, campaigns[case["like"]]!!.questions)
            }
        }
        for (case in listOfMembers(documents["refused"])) {
            check("documents refused", case["name"]) {
                // Half a character has no UTF-8; Java would write a question mark for it.
                val text = case["document"] as String
                refuses(case["code"]) {
                    ensure(Charsets.UTF_8.newEncoder().canEncode(text), INVALID_DOCUMENT)
                    Campaign.parse(text.toByteArray(), case["id"] as String?)
                }
            }
        }
        for (case in listOfMembers(files.getValue("crowd")["accepted"])) {
            check("crowds", case["name"]) {
                refuses("crowd-unsupported") { Campaign.parse((case["document"] as String).toByteArray(), case["id"] as String) }
            }
        }
    }

    fun reports() {
        val reports = files.getValue("reports")
        for (case in listOfMembers(reports["draws"])) {
            check("draws", case["document"]) {
                val (campaign, secret) = campaigns[case["document"]]!! to unhex(case["secret"] as String)
                equal(drawQuestions(campaign, secret).map { it.index.toDouble() }, case["questions"])
                equal(drawWindow(campaign, secret).toDouble(), case["window"] ?: 0.0)
            }
        }
        for (case in listOfMembers(reports["accepted"])) {
            check("reports", case["document"]) {
                val script = Script(case["words"] as List<*>)
                val secret = unhex(case["secret"] as String)
                val made = perturbed(campaigns[case["document"]]!!, case["record"], case["label"], secret, script.coins)
                equal(
                    made.map { listOf(it.question.toDouble(), shown(it.item), hex(it.id), hex(it.payload)) },
                    listOfMembers(case["reports"]).map { listOf(it["question"], shown(it["item"]), it["id"], it["payload"]) },
                )
                equal(hex(encodeUpload(made, campaigns[case["document"]]!!)), case["upload"])
                equal(script.taken, (case["words"] as List<*>).size)
            }
        }
        for (case in listOfMembers(reports["refused"])) {
            check("records refused", case) {
                val nothing = Script(emptyList<Any>()).coins
                refuses(case["code"]) { perturbed(campaigns[case["document"]]!!, case["record"], case["label"], ByteArray(32), nothing) }
            }
        }
    }

    fun shown(item: Any?): Any? = when (item) {
        is Item.Index -> item.index.toDouble()
        is Item.Moment -> listOf(item.cell.toDouble(), "${item.value}")
        is Map<*, *> -> listOf(item["cell"], "${(item["value"] as? String) ?: (item["value"] as Double).toLong()}")
        else -> item
    }

    fun uploads() {
        val uploads = files.getValue("uploads")
        for (case in listOfMembers(uploads["malformed"])) {
            check("uploads refused", case["name"]) {
                refuses(case["code"]) { decodeUpload(unhex(case["upload"] as String), campaigns[uploads["document"]]!!) }
            }
        }
        for (case in listOfMembers(uploads["impossible"])) {
            check("reports refused", case["upload"]) {
                val campaign = campaigns[case["document"]]!!
                val report = decodeUpload(unhex(case["upload"] as String), campaign).single()
                refuses(case["code"]) { counted(campaign.questions[report.question].mechanism, report.payload) }
            }
        }
    }

    fun training() {
        val training = files.getValue("training")
        for (case in listOfMembers(training["accepted"])) {
            check("tallies", case["document"]) {
                val campaign = campaigns[case["document"]]!!
                val tally = (case["counts"] as List<*>).map { LongArray((it as List<*>).size) }
                val answered = LongArray(tally.size)
                for (report in decodeUpload(unhex(case["upload"] as String), campaign)) {
                    counted(campaign.questions[report.question].mechanism, report.payload)
                        .forEach { (cell, count) -> tally[report.question][cell] += count }
                    answered[report.question]++
                }
                equal(answered.map { it.toDouble() }, case["n"])
                equal(tally.map { cells -> cells.map { it.toDouble() } }, case["counts"])
            }
            val classifier = Classifier.parse((case["model"] as String).toByteArray())
            for (told in listOfMembers(case["predictions"])) {
                check("predictions", case["document"]) {
                    near(classifier.scores(members(told["record"])), told["scores"])
                    equal(classifier.predict(members(told["record"])), told["class"])
                }
            }
        }
        val impossible = members(training["impossible"])
        val strict = Classifier.parse((impossible["model"] as String).toByteArray())
        for (told in listOfMembers(impossible["predictions"])) {
            check("predictions of the impossible", told["record"]) {
                equal(strict.predict(members(told["record"])), told["class"])
                near(strict.scores(members(told["record"])), told["scores"])
            }
        }
        for (case in listOfMembers(training["refused"])) {
            check("models refused", case["name"]) {
                refuses(case["code"]) { Classifier.parse((case["model"] as String).toByteArray()) }
            }
        }
    }

    fun directories() {
        val directories = files.getValue("directories")
        for (case in listOfMembers(directories["accepted"]) + listOfMembers(directories["refused"])) {
            val code = case["code"]
            check(if (code == null) "directories" else "directories refused", case["name"]) {
                val text = case["document"] as String
                val read = { Directory.read(text.toByteArray(), directories["key"] as String) }
                if (code != null) {
                    refuses(code) { read() }
                } else {
                    read().run {
                        equal(
                            listOf(version.toDouble(), "$expires", campaigns),
                            listOf(case["version"], case["expires"], case["campaigns"]),
                        )
                    }
                }
            }
        }
    }
}

internal fun vectors(folder: File) = Vectors(folder).run {
    values()
    documents()
    reports()
    uploads()
    training()
    directories()
    words()
    for (case in listOfMembers(files.getValue("answers")["cases"])) check("answers", case["name"]) { answers(case, ::equal) }
    println(Json.write(checked))
}

// The server's side of an upload, as far as the vectors go.

private fun width(mechanism: Mechanism): Int {
    val index = if (mechanism.domainSize <= 256) {
        1
    } else if (mechanism.domainSize <= 65536) {
        2
    } else {
        4
    }
    return when (mechanism) {
        is DirectEncoding -> index
        is OneBit -> index + 1
        is SummingHistogram, is LaplaceVector -> 4 * mechanism.domainSize
        else -> (mechanism.domainSize + 7) / 8
    }
}

/** The reports of an upload: what is read must give the same bytes when it is written. */
private fun decodeUpload(bytes: ByteArray, campaign: Campaign): List<Report> = try {
    Upload(ByteBuffer.wrap(bytes), campaign).reports()
} catch (error: RuntimeException) {
    throw LdpException("malformed-upload", "$error")
}

private class Upload(private val bytes: ByteBuffer, private val campaign: Campaign) {
    private val asked = campaign.questions.size * (campaign.windows?.count ?: 1)

    fun byte(): Int = bytes.get().toInt() and 255

    /** A big-endian number of 1, 2 or 4 bytes, which no fewer would hold. */
    fun number(power: Int): Int {
        require(power in 0..2)
        val value = (0 until (1 shl power)).fold(0L) { sum, _ -> 256 * sum + byte() }
        require(power == 0 || value >= (1L shl (8 shl power - 1)))
        return Math.toIntExact(value)
    }

    fun binary(): ByteArray = ByteArray(number(byte() - 0xc4).also { require(it <= bytes.remaining()) }).also { bytes.get(it) }

    fun listHead(): Int = byte().let {
        if (it == 0xdc) number(1).also { size -> require(size >= 16) } else (it - 0x90).also { size -> require(size in 0..15) }
    }

    fun reports(): List<Report> {
        require(listHead() == 2 && byte() == 2)
        val blocks = listHead()
        require(blocks in 1..asked)
        var last = -1
        val reports = ArrayList<Report>()
        repeat(blocks) {
            require(listHead() == 3)
            val code = byte()
            val question = if (code < 128) code else number(code - 0xcc).also { require(it >= 128) }
            require(question > last && question < asked)
            last = question
            val (ids, payloads) = binary() to binary()
            val width = width(campaign.questions[question % campaign.questions.size].mechanism)
            require(ids.isNotEmpty() && ids.size % 16 == 0 && payloads.size == ids.size / 16 * width)
            for (i in 0 until ids.size / 16) {
                reports += Report(question, ids.copyOfRange(16 * i, 16 * i + 16), payloads.copyOfRange(width * i, width * i + width))
            }
        }
        val length = maxOf(bytes.position(), campaign.uploadBytes)
        while (bytes.hasRemaining()) require(byte() == 0)
        require(bytes.position() == length)
        return reports
    }
}

/** What one report adds to each cell of the tally. Throws for what no device sends. */
private fun counted(mechanism: Mechanism, payload: ByteArray): List<Pair<Int, Int>> {
    val d = mechanism.domainSize
    fun index(bytes: List<Byte>): Int =
        bytes.reversed().fold(0) { sum, byte -> 256 * sum + (byte.toInt() and 255) }.also { ensure(it < d, "index-out-of-range") }
    fun noisy(grid: Int, scale: java.math.BigInteger): List<Pair<Int, Int>> {
        val unit = java.math.BigInteger.ONE.shiftLeft(40)
        val bound = (1L shl grid) + (scale.shiftLeft(4) + unit - java.math.BigInteger.ONE).shiftRight(40).toLong()
        val cells = ByteBuffer.wrap(payload).order(ByteOrder.LITTLE_ENDIAN).asIntBuffer()
        return (0 until d).map { it to cells[it] }.onEach { (_, cell) -> ensure(Math.abs(cell.toLong()) <= bound, "value-out-of-range") }
    }
    return when (mechanism) {
        is DirectEncoding -> listOf(index(payload.toList()) to 1)

        is OneBit -> {
            val bit = payload.last().toInt()
            val cell = index(payload.dropLast(1))
            ensure(bit in 0..1, "bit-out-of-range")
            listOf(2 * cell + bit to 1)
        }

        is SummingHistogram -> noisy(0, mechanism.scale)

        is LaplaceVector -> noisy(mechanism.grid.toInt(), mechanism.scale)

        else -> {
            val set = (0 until 8 * payload.size).filter { payload[it / 8].toInt() shr it % 8 and 1 == 1 }
            ensure(set.all { it < d }, "padding-bits-set")
            ensure(mechanism !is SubsetSelection || set.size == mechanism.w.toInt(), "wrong-subset-size")
            set.map { it to 1 }
        }
    }
}
