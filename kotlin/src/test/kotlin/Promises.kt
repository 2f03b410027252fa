package ldpbayes

import java.io.File
import java.io.IOException
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds

/** What a device promises, on files and in memory, against an aggregator in memory. */
internal class Promises(private val document: ByteArray, private val id: String, private val folder: File) {
    private val record = mapOf("colour" to "green", "größe" to 0.25, "hours" to 41.5)
    private val url = "https://collect.example"
    private val uploads = ArrayList<String>()
    private var made = 0
    private var now = 1_767_225_600_000L

    /** How an upload is answered; null: the answer is lost. */
    private var upload: () -> Answer? = { Answer(200, emptyMap(), """{"rejected": []}""".toByteArray()) }

    private fun problem(status: Int, code: String, vararg headers: Pair<String, String>) =
        Answer(status, mapOf("content-type" to "application/problem+json", *headers), """{"code": "$code"}""".toByteArray())

    private val transport = Transport { request ->
        when {
            request.body != null -> {
                uploads += hex(request.body)
                upload() ?: throw IOException("the answer was lost")
            }
            request.url == "$url/v1/campaigns/$id" -> Answer(200, emptyMap(), document)
            else -> problem(404, "no-model")
        }
    }

    private fun fresh(): File = File(folder, "device ${made++}")

    private fun device(place: File, cap: Double = 2.0) = Device(FileStorage(place), cap, Policy(), transport) { now }

    private fun campaign(place: File, cap: Double = 2.0) = device(place, cap).campaign(url, id, maxEpsilon = 1.0)

    private fun promise(sentence: String, test: (File) -> Unit) {
        uploads.clear()
        upload = { Answer(200, emptyMap(), """{"rejected": []}""".toByteArray()) }
        try {
            test(fresh())
        } catch (error: Exception) {
            throw IllegalStateException(sentence, error)
        }
        println(sentence)
    }

    private fun equal(found: Any?, wanted: Any?) = check(found == wanted) { "$found, not $wanted" }

    private fun refuses(code: String, action: () -> Unit) = try {
        action()
        error("not refused, although $code")
    } catch (error: LdpException) {
        equal(error.code, code)
    }

    fun all() {
        promise("nothing is stored before somebody decides") { place ->
            val campaign = campaign(place)
            equal((campaign.nextStep() as NextStep.Ask).campaign.id, id)
            refuses("consent-missing") { campaign.contribute(record, "yes") }
            equal(device(place).runOnce(), true)
            equal(place.exists(), false)
        }
        promise("a device that agreed answers once, and every retry is the same bytes") { place ->
            campaign(place).grant()
            equal(campaign(place).nextStep(), NextStep.Contribute)
            val first = campaign(place).contribute(record, "yes") as Contribution.Answered
            equal((campaign(place).contribute(record, "no") as Contribution.Answered).receipt, first.receipt)
            upload = { null }
            repeat(3) {
                now += 86_400_000
                device(place).runOnce(Duration.ZERO)
            }
            upload = { Answer(200, emptyMap(), """{"rejected": []}""".toByteArray()) }
            now += 86_400_000
            equal(device(place).runOnce(), true)
            equal(uploads.size to uploads.toSet().size, 4 to 1)
            equal(campaign(place).status().run { listOf(fate, queued, sent, retries) }, listOf(Fate.ARRIVED, 0, 1, 3))
            equal(campaign(place).nextStep(), NextStep.Nothing())
            equal(device(place).sent().single().let { it.payload in uploads[0] && it.id in uploads[0] }, true)
        }
        promise("a No is remembered") { place ->
            equal(campaign(place).withdraw(), Withdrawal(0, 0, 0.0))
            equal(campaign(place).nextStep(), NextStep.Nothing())
            refuses("consent-missing") { campaign(place).contribute(record, "yes") }
        }
        promise("who withdraws before anything left gets the loss back") { place ->
            campaign(place).grant()
            val receipt = (campaign(place).contribute(record, "yes") as Contribution.Answered).receipt
            equal(campaign(place).withdraw(), Withdrawal(1, 0, receipt.epsilon))
            equal(device(place).ledger().totalEpsilon, 0.0)
            equal(device(place).runOnce(), true)
            equal(uploads, emptyList<String>())
        }
        promise("what began to leave stays spent") { place ->
            campaign(place).grant()
            campaign(place).contribute(record, "yes")
            upload = { null }
            device(place).runOnce(Duration.ZERO)
            equal(campaign(place).withdraw(), Withdrawal(1, 1, 0.0))
            equal(campaign(place).receipt()?.fate, Fate.DELETED)
            check(device(place).ledger().totalEpsilon > 0)
        }
        promise("a campaign above a cap is refused, and nothing is spent") { place ->
            equal(device(place, 0.5).campaign(url, id, 1.0).refusal(), Refusal.ABOVE_TOTAL)
            equal(device(place).campaign(url, id, 0.5).refusal(), Refusal.ABOVE_CAP)
            refuses("loss-above-cap") { device(place).campaign(url, id, 0.5).grant() }
            equal(place.exists(), false)
        }
        promise("switched off, nothing is answered and nothing sent") { place ->
            campaign(place).grant()
            campaign(place).contribute(record, "yes")
            device(place).enabled = false
            equal(device(place).runOnce(), true)
            equal(uploads.size, 0)
            device(place).enabled = true
            equal(device(place).runOnce(), true)
            equal(uploads.size, 1)
        }
        promise("an undeclared label spends nothing") { place ->
            campaign(place).grant()
            refuses("undeclared-label") { campaign(place).contribute(record, "perhaps") }
            equal(device(place).ledger().receipts, emptyList<Receipt>())
        }
        promise("a damaged ledger is never taken for an empty one") { place ->
            campaign(place).grant()
            val file = File(place, "device")
            val whole = file.readText()
            for (damaged in listOf("", whole.dropLast(1), whole.replace("true", "false"), "x")) {
                file.writeText(damaged)
                refuses("storage-corrupt") { campaign(place).contribute(record, "yes") }
                equal(file.readText(), damaged)
            }
        }
        promise("a refusal takes the report off the queue, a doubt does not, and Retry-After is waited for") { place ->
            campaign(place).grant()
            campaign(place).contribute(record, "yes")
            upload = { problem(503, "busy", "retry-after" to "100") }
            equal(device(place).runOnce(Duration.ZERO), false)
            check(campaign(place).status().nextTry!! >= now + 100_000)
            upload = { Answer(404, emptyMap(), "a hotel's login page".toByteArray()) }
            now += 86_400_000
            equal(device(place).runOnce(Duration.ZERO), false)
            equal(campaign(place).status().queued, 1)
            upload = { problem(409, "campaign-closed") }
            now += 86_400_000
            equal(device(place).runOnce(Duration.ZERO), true)
            equal(campaign(place).status().run { fate to dropped }, Fate.REFUSED to mapOf("campaign-closed" to 1))
        }
        promise("a clock that jumps strands no report and throws none away") { place ->
            campaign(place).grant()
            campaign(place).contribute(record, "yes")
            upload = { null }
            now += 20 * 365 * 86_400_000L // far ahead: one try fails there
            device(place).runOnce(Duration.ZERO)
            now -= 20 * 365 * 86_400_000L // and back: the next try is no further away than the policy says
            device(place).runOnce(Duration.ZERO)
            check(campaign(place).status().nextTry!! <= now + RETRY_AFTER_LONGEST.inWholeMilliseconds)
            now += 40 * 365 * 86_400_000L // older than any report may be, after two tries only
            upload = { Answer(200, emptyMap(), """{"rejected": []}""".toByteArray()) }
            equal(device(place).runOnce(), true)
            equal(campaign(place).status().fate, Fate.ARRIVED)
            equal(uploads.toSet().size, 1)
            now -= 40 * 365 * 86_400_000L
        }
        promise("threads contribute once between them") { place ->
            campaign(place).grant()
            val threads = List(8) { kotlin.concurrent.thread { campaign(place).contribute(record, "yes"); device(place).runOnce(5.seconds) } }
            threads.forEach { it.join() }
            equal(uploads.toSet().size, 1)
        }
        promise("erasing leaves nothing") { place ->
            campaign(place).grant()
            campaign(place).contribute(record, "yes")
            device(place).erase()
            equal(place.list()!!.filterNot { it.endsWith(".lock") }, emptyList<String>())
            equal(campaign(place).nextStep() is NextStep.Ask, true)
        }
        promise("a process with cookies of its own sends nothing by itself") {
            java.net.CookieHandler.setDefault(java.net.CookieManager())
            try {
                UrlConnectionTransport.send(Request("http://127.0.0.1:1", emptyMap(), null, 1.seconds, 1))
                error("sent")
            } catch (error: IOException) {
                check("CookieHandler" in error.message!!)
            } finally {
                java.net.CookieHandler.setDefault(null)
            }
        }
    }
}
