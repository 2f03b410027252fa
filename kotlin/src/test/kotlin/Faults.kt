package org.example.ldpbayes

import org.example.ldpbayes.testing.MemoryStorage
import java.io.File
import java.io.IOException
import java.net.ServerSocket
import java.security.KeyPairGenerator
import java.security.Signature
import java.time.Instant
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds

private const val URL = "https://collect.example"
private const val MOST_SECONDS = 6

/** README's snippet with something wrong: it ends within six seconds, and nobody is asked in vain. */
internal class Faults(private val plain: Campaign, private val folder: File) {
    private val record = mapOf("colour" to "green")
    private val document = String(plain.document)
    private var made = 0
    private var asked = false
    private fun fresh(): File = File(folder, "faulty ${made++}")
    private fun ok(body: String) = Answer(200, emptyMap(), body.toByteArray())

    /** Answers for the campaign whose document is [document]. */
    private fun serving(document: String = this.document) = Transport { request ->
        when {
            request.body != null -> ok("""{"rejected": []}""")
            request.url.endsWith("/state") -> ok("""{"state": "open"}""")
            else -> ok(document)
        }
    }

    /** The snippet; the next step at its end. */
    private fun run(
        storage: Storage = MemoryStorage(),
        transport: Transport = serving(),
        id: String = plain.id,
        publisher: Publisher? = null,
        url: String = URL,
    ): NextStep {
        asked = false
        val begun = System.nanoTime()
        val device = Device(storage, maxTotalEpsilon = 4.0, transport = transport)
        val campaign = device.campaign(url, id, maxEpsilon = 2.0, publisher = publisher)
        var step = campaign.nextStep()
        if (step is NextStep.Ask) step = campaign.decide(agrees())
        if (step == NextStep.Contribute) campaign.contribute(record, "no")
        device.start()
        check(System.nanoTime() - begun < MOST_SECONDS * 1_000_000_000L) { "it took longer" }
        device.close()
        return step as? NextStep.Nothing ?: campaign.nextStep()
    }

    private fun agrees(): Boolean = true.also { asked = true }
    private fun agreed(storage: Storage) {
        check(Device(storage, 4.0, transport = serving()).campaign(URL, plain.id, 2.0).decide(true) == NextStep.Contribute)
    }

    private fun fault(sentence: String, reason: String, asks: Boolean = false, test: () -> NextStep) {
        val step = try {
            test()
        } catch (error: Exception) {
            throw IllegalStateException(sentence, error)
        }
        check(step == NextStep.Nothing(reason) && asked == asks) { "$sentence: $step, asked: $asked" }
        println(sentence)
    }

    fun all() {
        fault("where nothing is wrong the person is asked, and answers once", "answered", asks = true) { run() }
        storages()
        networks()
        documents()
        directories()
        times()
    }

    private fun storages() {
        fun stored(text: String): String = base64url(sha256(text.toByteArray())) + text
        val newer = stored("""{"version":4,"secret":"","enabled":true,"campaigns":[]}""")
        for ((name, text, code) in listOf(
            Triple("damaged", "x", "storage-corrupt"),
            Triple("empty", "", "storage-corrupt"),
            Triple("of an unknown kind", stored("""{"of":"another"}"""), "storage-corrupt"),
            Triple("newer", newer, "storage-newer"),
        )) {
            val place = fresh()
            agreed(FileStorage(place))
            File(place, "device").writeText(text)
            fault("a storage that is $name", code) { run(FileStorage(place)) }
            fault("a storage that was $name and is erased", "answered", asks = true) {
                Device(place, 4.0).erase()
                run(FileStorage(place))
            }
        }
        val place = fresh()
        agreed(FileStorage(place))
        val text = File(place, "device").readText().drop(43).replace("\"version\":3,", "").replace("\"upload_bytes\":0,", "")
        check("version" !in text && "upload_bytes" !in text)
        File(place, "device").writeText(stored(text))
        fault("a storage from before it had a version", "answered") { run(FileStorage(place)) }
        val way = fresh().apply { writeText("") }
        fault("a file where the folder should be", "storage-unavailable") { run(FileStorage(File(way, "ldp"))) }
        if (File("/proc/self").isDirectory) {
            fault("a folder where nothing can be made", "storage-unavailable") { run(FileStorage(File("/proc/self/ldp"))) }
        }
        val full = object : Storage by MemoryStorage() {
            override fun check() = throw LdpException("storage-full")
        }
        fault("a full storage", "storage-full") { run(full) }
        val odd = object : Storage by MemoryStorage() {
            override fun read(name: String): String? = throw IllegalStateException("odd")
        }
        fault("a storage that throws what it likes", "unexpected") { run(odd) }
    }

    private fun networks() {
        fault("a network that is refused", "unreachable") { run(transport = { throw IOException("refused") }) }
        fault("a transport that throws what it likes", "unreachable") { run(transport = { throw IllegalStateException("odd") }) }
        fault("a server in trouble", "http-500") { run(transport = { Answer(500, emptyMap(), ByteArray(0)) }) }
        fault("a server that says something else", "wrong-hash") { run(transport = { ok("<html>") }) }
        fault("a transport that never returns", "timeout") {
            run(transport = {
                Thread.sleep(60_000)
                ok("")
            })
        }
        ServerSocket(0, 1, java.net.InetAddress.getLoopbackAddress()).use { silent ->
            val url = "http://127.0.0.1:${silent.localPort}"
            fault("a server that is silent", "timeout") { run(transport = UrlConnectionTransport, url = url) }
        }
    }

    private fun documents() {
        for ((name, change, code) in listOf(
            Triple("newer", """"version":99""", INVALID_DOCUMENT),
            Triple("of a campaign with an issuer", """"issuer":{"name":"issuer.example","key":"AA"},"version":1""", "issuer-unsupported"),
            Triple("of a campaign with a gateway", """"gateway":{"key":"AA"},"version":1""", "no-relay"),
        )) {
            val other = Regex("\"version\": ?1").replaceFirst(document, change)
            check(other != document)
            fault("a document that is $name", code) { run(transport = serving(other), id = base64url(sha256(other.toByteArray()))) }
        }
        val mixed = Regex("\"privacy\": ?\\{").replaceFirst(document, "\"privacy\":{\"crowd\":{\"epsilon\":1},")
        check(mixed != document)
        fault("a document that is of a campaign with a crowd", "crowd-unsupported") {
            run(transport = serving(mixed), id = base64url(sha256(mixed.toByteArray())))
        }
        val pinned = Publisher("A".repeat(43))
        fault("a publisher that has signed nothing", "malformed-directory") { run(publisher = pinned) }
        val providers = java.security.Security.getProviders().filter { it.getService("KeyFactory", "Ed25519") != null }
        providers.forEach { java.security.Security.removeProvider(it.name) }
        try {
            val signature = "A".repeat(86)
            val directory = """{"statement": "{}", "signature": "$signature"}"""
            fault("a platform that checks no signatures", "no-signatures") { run(transport = serving(directory), publisher = pinned) }
        } finally {
            providers.forEach { java.security.Security.addProvider(it) }
        }
    }

    /** What a publisher signed is believed in the order of its versions, after a restart too, and also where it has expired. */
    private fun directories() {
        val pair = KeyPairGenerator.getInstance("Ed25519").generateKeyPair()
        val key = base64url(pair.public.encoded.takeLast(32).toByteArray())
        val storage = MemoryStorage().also { agreed(it) }
        var served = ""
        val transport = Transport { if ("/directories/" in it.url) ok(served) else serving().send(it) }

        fun answered(version: Int, names: Boolean = true, days: Long = 30): String {
            val campaigns = if (names) listOf(mapOf("id" to plain.id)) else emptyList()
            val expires = Instant.ofEpochSecond(Instant.now().epochSecond + days * 86_400).toString()
            val statement = Json.write(mapOf("version" to version, "expires" to expires, "campaigns" to campaigns))
            val signature = Signature.getInstance("Ed25519").run {
                initSign(pair.private)
                update("ldp-bayes directory 1\n$statement".toByteArray())
                sign()
            }
            served = Json.write(mapOf("statement" to statement, "signature" to base64url(signature)))
            val part = Device(storage, 4.0, transport = transport).campaign(URL, plain.id, 2.0, publisher = Publisher(key))
            return try {
                part.fetch()
                part.refusal()?.code ?: "believed"
            } catch (error: LdpException) {
                error.code
            }
        }
        val told = listOf(
            answered(5, names = false),
            answered(4),
            answered(5),
            answered(6, days = -2),
            answered(5),
            answered(7),
            answered(6, names = false),
        )
        val older = "older-directory"
        check(told == listOf("not-in-directory", older, older, "directory-expired", older, "believed", "believed")) { "$told" }
        println("a directory older than one that was seen is refused, also where that one has expired")
        answered(8)
        val next = Publisher("A".repeat(43), key)
        check(Device(MemoryStorage(), 4.0, transport = transport).campaign(URL, plain.id, 2.0, publisher = next).refusal() == null)
        println("a key that has signed nothing yet stops nobody beside one that has")
    }

    private fun times() {
        val storage = MemoryStorage()
        val late = Transport { request ->
            Thread.sleep(60)
            serving().send(request)
        }
        fault("a yes that came too late is kept nowhere", "timeout") {
            val campaign = Device(storage, 4.0, transport = late).campaign(URL, plain.id, 2.0)
            asked = false
            campaign.decide(true, 20.milliseconds).also { Thread.sleep(300) }
        }
        check(storage.read("device") == null && storage.read("campaign-${plain.id}") == null)
        val silent = Device(MemoryStorage(), 4.0, transport = {
            Thread.sleep(60_000)
            ok("")
        }).campaign(URL, plain.id, 2.0)
        val calls = listOf<(Duration) -> Any?>(silent::fetch, silent::refusal, silent::grant, silent::classifier)
        for (call in calls) {
            val code = try {
                call(20.milliseconds)
                "nothing"
            } catch (error: AwayException) {
                error.code
            }
            check(code == "timeout") { code }
        }
    }

    /** A model is used as it is kept, at once; the newest at the next call, stored or not. */
    fun models(campaign: Campaign, older: String, newer: String) {
        var model = older
        val kept = MemoryStorage()
        val transport = Transport { if (it.url.endsWith("/model")) ok(model) else serving(String(campaign.document)).send(it) }
        fun on(storage: Storage, by: Transport = transport) = Device(storage, 9.0, transport = by).campaign(URL, campaign.id, 9.0)
        on(kept).run {
            grant()
            classifier()
        }
        val silent = on(kept, {
            Thread.sleep(60_000)
            ok("")
        })
        silent.classifier(20.milliseconds)
        model = newer
        val unwritable = object : Storage by kept {
            override fun change(name: String, change: (String?) -> String?) = throw LdpException("storage-full")
        }
        val part = on(unwritable)
        val before = kept.read("model-${campaign.id}")
        fun told() = generateSequence { part.classifier().predictProba(emptyMap()).also { Thread.sleep(10) } }.take(500)
        check(told().distinct().take(2).count() == 2) { "the newest model was not used" }
        val newest = part.classifier().predictProba(emptyMap())
        model = older
        check(told().any { it != newest }) { "the model was renewed once, and never again" }
        check(kept.read("model-${campaign.id}") == before)
        println("a model is used at once as it was kept, and the newest at the next call")
    }
}
