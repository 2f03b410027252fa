@file:Suppress("UNCHECKED_CAST")

// The test program: what it does is its first argument. tests/phones runs it.

package org.example.ldpbayes

import org.example.ldpbayes.testing.FakeAggregator
import org.example.ldpbayes.testing.MemoryStorage
import java.io.File
import java.io.IOException
import java.security.Security
import java.time.Instant
import kotlin.time.Duration.Companion.milliseconds
import kotlin.time.Duration.Companion.seconds

fun main(arguments: Array<String>) {
    val (task, rest) = arguments[0] to arguments.drop(1)
    when (task) {
        "vectors" -> vectors(File(rest[0]))
        "differential" -> eachLine { differential(members(it)) }
        "lines" -> Lines().let { lines -> eachLine { lines.answer(members(it)) } }
        "deliver" -> deliver(rest[0], rest[1], File(rest[2]))
        "decide" -> decide(File(rest[0]), File(rest[1]))
        "frozen" -> frozen(File(rest[0]))
        "promises" -> promises(File(rest[0]), File(rest[1]))
        "no-randomness" -> withoutRandomness()
        "speed" -> speed(File(rest[0]))
        else -> error("no task is called $task")
    }
}

private fun eachLine(answer: (Any?) -> String) {
    System.`in`.bufferedReader().forEachLine { println(answer(Json.parse(it))) }
}

/** What this client makes of a campaign, records and scripted words, for a comparison with Python. */
private fun differential(line: Members): String {
    val text = line["document"] as String
    return Json.write(
        try {
            ensure(Charsets.UTF_8.newEncoder().canEncode(text), INVALID_DOCUMENT)
            val campaign = Campaign.parse(text.toByteArray())
            val secret = unhex(line["secret"] as String)
            mapOf(
                "id" to campaign.id,
                "epsilon" to campaign.realisedEpsilon,
                "closes" to campaign.closes?.toEpochMilli(),
                "window" to drawWindow(campaign, secret),
                "questions" to drawQuestions(campaign, secret).map { it.index },
                "answers" to (line["records"] as List<*>).map { one ->
                    val (record, label, words) = one as List<*>
                    val script = Script(words as List<*>)
                    val whole = (record as? Map<*, *>)?.mapValues { (_, value) -> typed(value) } ?: record
                    try {
                        listOf(hex(encodeUpload(perturbed(campaign, whole, typed(label), secret, script.coins), campaign)), script.taken)
                    } catch (error: LdpException) {
                        error.code
                    }
                },
            )
        } catch (error: LdpException) {
            mapOf("refused" to error.code)
        },
    )
}

/** What an object with the one member `integer` or `double` stands for. */
private fun typed(value: Any?): Any? {
    val (type, text) = (value as? Map<*, *>)?.entries?.singleOrNull() ?: return value
    return when (type) {
        "integer" -> "$text".toBigInteger()
        "double" -> "$text".replace("inf", "Infinity").replace("nan", "NaN").toDouble()
        else -> value
    }
}

/** This client as a program of lines, for an audit (docs/audit.md). */
private class Lines {
    private val devices = HashMap<String, Stranded>()
    private lateinit var campaign: Campaign
    private var folder: String? = null

    fun answer(line: Members): String {
        line["storage"]?.let { folder = it as String }
        return try {
            line["document"]?.let { campaign = Campaign.parse((it as String).toByteArray()) }
            val label = line["label"]
            val record = (line["record"] as? Members)?.let { Odd(it, line["odd"] as? Members ?: emptyMap()) } ?: noRecord(campaign, label)
            val device = line["device"]?.toString() ?: return hex(encodeUpload(perturb(campaign, record, label), campaign))
            val stranded = devices.getOrPut("${campaign.id} $device") { Stranded(campaign, device, folder) }
            line["now"]?.let { stranded.now = Instant.parse(it as String).toEpochMilli() }
            stranded.answer(line, record, label)
        } catch (error: LdpException) {
            "!${error.code}"
        }
    }
}

/** A record with values that JSON has no word for, and with some that throw when they are read. */
private class Odd(record: Members, private val odd: Members) : AbstractMap<String, Any?>() {
    override val entries = (record + odd).entries

    override fun get(key: String): Any? = when (odd[key]) {
        null -> super.get(key)
        "nan" -> Double.NaN
        "infinity" -> Double.POSITIVE_INFINITY
        "-infinity" -> Double.NEGATIVE_INFINITY
        else -> throw IllegalStateException("$key cannot be read")
    }
}

private const val NOWHERE = "http://127.0.0.1:1"
private const val DAY = 86_400_000L
private const val STEPS = 20

/** One device whose requests never arrive. */
private class Stranded(private val campaign: Campaign, name: String, folder: String?) {
    private val requests = ArrayList<Request>()
    var now = 1_800_000_000_000L
    private val device = Device(
        if (folder == null) MemoryStorage() else FileStorage(File(folder, hex(sha256(name.toByteArray())))),
        maxTotalEpsilon = 1e6,
        transport = { request ->
            requests += request
            throw IOException("the connection is lost")
        },
        now = { now },
    )
    private val own = device.campaign(NOWHERE, campaign.id, maxEpsilon = 1e6)

    /** What a line makes leave this device: uploads, or, `sealed`, whole requests. */
    fun answer(line: Members, record: Members, label: Any?): String {
        when {
            line["erase"] != null -> device.erase()
            line["resend"] != null -> pass(1000 * (line["resend"] as Number).toLong())
            else -> contribute(record, label)
        }
        val sent = if (line["sealed"] == true) requests.map(::text) else uploads().map { hex(it) }.takeLast(1)
        requests.clear()
        return sent.joinToString(" ")
    }

    private fun uploads() = requests.mapNotNull { it.body }

    /** Lets time pass, a little at a time: what is due is sent. */
    private fun pass(milliseconds: Long) = repeat(STEPS) {
        now += milliseconds / STEPS
        device.runOnce(50.milliseconds)
    }

    /** A request as it leaves, less what every HTTP client adds. */
    private fun text(request: Request): String {
        val lines = request.headers.map { (name, value) -> "$name: $value\n" }.joinToString("")
        val method = if (request.body == null) "GET" else "POST"
        return hex("$method ${request.url}\n$lines\n".toByteArray() + (request.body ?: ByteArray(0)))
    }

    private fun contribute(record: Members, label: Any?) {
        own.load(campaign.document)
        own.grant()
        val refused = own.contribute(record, label) as? Contribution.Refused
        if (refused != null) throw RefusedException(refused.refusal)
        for (attempt in 1..100) {
            if (uploads().isEmpty()) {
                now += DAY // another process of the same storage may have left a time for the next attempt
                device.runOnce(50.milliseconds) // or be sending
            }
        }
    }
}

/** A device that agrees, answers and delivers to an aggregator, until that is done; it may be killed at any moment. */
private fun deliver(url: String, id: String, folder: File) {
    val device = Device(FileStorage(folder), 100.0, Policy(backoffBase = 20.milliseconds))
    val campaign = device.campaign(url, id, maxEpsilon = 100.0)
    while (true) {
        when (campaign.nextStep()) {
            is NextStep.Ask -> campaign.grant()
            NextStep.Contribute -> campaign.contribute(mapOf("u" to listOf("1", "2").random()), listOf("a", "b").random())
            is NextStep.Nothing -> break
        }
    }
    val done = device.runOnce(30.seconds)
    println("${campaign.status().fate} $done ${device.sent().map { it.id + it.payload }}")
}

/** Why nothing is to be done about a document with this folder: before, and after a yes. */
private fun decide(document: File, folder: File) {
    val campaign = Campaign.parse(document.readBytes())
    val own = Device(folder, 100.0).campaign(NOWHERE, campaign.id, 100.0)
    own.load(campaign.document)
    for (step in listOf(own.nextStep(), own.decide(true))) println((step as? NextStep.Nothing)?.reason ?: "goes on")
}

/** A storage of an earlier version, with an answer that waits: what it says, what it sends, and what it says then. */
private fun frozen(folder: File) {
    val aggregator = FakeAggregator()
    val device = Device(FileStorage(folder), 10.0, Policy(), aggregator) { 1_800_000_100_000 }
    val id = device.ledger().receipts.single().campaignId
    aggregator.publish(File(folder, "campaign-$id").readBytes())
    val campaign = device.campaign("https://collect.example", id, 4.0)
    println("${(campaign.nextStep() as NextStep.Nothing).reason} ${campaign.status().queued}")
    println(device.runOnce(10.seconds))
    println(aggregator.uploads.map(::hex).single())
    val (fate, sent) = campaign.status().fate to device.sent().single().id
    println("$fate $sent ${campaign.withdraw().deleted} ${device.ledger().receipts.size}".lowercase())
}

/** Microseconds for a report that is drawn, randomised and encoded, in a virtual machine that is warm. */
private fun speed(documents: File) {
    val cases = listOfMembers(members(Json.parse(documents.readText()))["accepted"])
    for (name in listOf("de-onebit", "oue-sign", "ss-laplace")) {
        val campaign = Campaign.parse((cases.first { it["name"] == name }["document"] as String).toByteArray())
        val record = mapOf("colour" to "green", "größe" to 0.25, "hours" to 41.5)
        fun run(times: Int): Double = System.nanoTime().let { begun ->
            repeat(times) { encodeUpload(perturb(campaign, record, "yes"), campaign) }
            (System.nanoTime() - begun) / 1e3 / times
        }
        run(20_000)
        println("%-12s %.1f us a report".format(name, run(20_000)))
    }
}

/** Promises that need no other process: each is a sentence, and fails with one. */
private fun promises(vectors: File, folder: File) {
    val cases = listOfMembers(members(Json.parse(File(vectors, "documents.json").readText()))["accepted"])
    fun document(name: Any?) = Campaign.parse((cases.first { it["name"] == name }["document"] as String).toByteArray())
    Promises(::document, folder).all()
    val trained = listOfMembers(members(Json.parse(File(vectors, "training.json").readText()))["accepted"])[0]
    val model = trained["model"] as String
    val turned = members(Json.parse(model)).let { it + ("prior" to (it["prior"] as List<*>).reversed()) }
    Faults(document("de-onebit"), folder).run {
        all()
        models(document(trained["document"]), model, Json.write(turned))
    }
    Embedding(document("de-onebit")).all()
}

/** In a process of its own, since it cannot be undone: every provider of random numbers is taken away. */
private fun withoutRandomness() {
    val random = Security.getProviders().filter { provider -> provider.services.any { it.type == "SecureRandom" } }
    random.forEach { Security.removeProvider(it.name) }
    val code = try {
        Coins.system().below(2)
        "drawn"
    } catch (error: LdpException) {
        error.code
    }
    check(code == "no-randomness") { "without a generator: $code" }
    println("without a CSPRNG nothing is drawn")
}
