package org.example.ldpbayes

import java.io.File
import java.io.IOException
import java.util.concurrent.CountDownLatch
import java.util.concurrent.TimeUnit
import kotlin.time.Duration
import kotlin.time.Duration.Companion.seconds

private const val DAY = 86_400_000L
private const val WEEK = 7 * DAY

/** What a device promises, on files and in memory, against an aggregator in memory. */
internal class Promises(documents: (String) -> Campaign, private val folder: File) {
    private val plain = documents("de-onebit")
    private val series = documents("series")
    private val small = documents("small-epsilon")
    private val ofMany = documents("series-all")
    private val id = plain.id
    private val record = mapOf("colour" to "green", "größe" to 0.25, "hours" to 41.5)
    private val yes = Answer(200, emptyMap(), """{"rejected": []}""".toByteArray())
    private val url = "https://collect.example"
    private val uploads = ArrayList<String>()
    private var made = 0
    private var now = 1_767_225_600_000L

    /** How an upload is answered; null: the answer is lost. */
    private var upload: () -> Answer? = { yes }

    private val asked = ArrayList<Long>()

    /** How a campaign stands, as the aggregator says. */
    private var state: () -> Answer = { standing("open") }

    private fun standing(state: String) = Answer(200, emptyMap(), """{"state": "$state"}""".toByteArray())

    private val transport = Transport { request ->
        when {
            request.body != null -> {
                uploads += hex(request.body)
                upload() ?: throw IOException("the answer was lost")
            }

            request.url.endsWith("/state") -> {
                asked += now
                state()
            }

            else -> listOf(plain, series, ofMany).find { request.url == "$url/v1/campaigns/${it.id}" }
                ?.let { Answer(200, emptyMap(), it.document) } ?: problem(404, "no-model")
        }
    }

    private fun fresh(): File = File(folder, "device ${made++}")

    private fun device(place: File, cap: Double = 10.0) = Device(FileStorage(place), cap, Policy(), transport) { now }

    private fun campaign(place: File, campaign: Campaign = plain) = device(place).campaign(url, campaign.id, maxEpsilon = 4.0)

    private fun promise(sentence: String, test: (File) -> Unit) {
        uploads.clear()
        upload = { yes }
        asked.clear()
        state = { standing("open") }
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

    private val first = series.windows!!.from.toEpochMilli()

    /** A device that has agreed before the first window; its clock stands there. Returns when its window opens. */
    private fun early(place: File, campaign: Campaign = series): Long {
        now = first - 1
        check(campaign(place, campaign).nextStep() is NextStep.Ask)
        campaign(place, campaign).grant()
        return campaign(place, campaign).window()!!.start.toEpochMilli()
    }

    private fun refused(place: File, refusal: Refusal) {
        equal(campaign(place, series).nextStep(), NextStep.Nothing(refusal.code))
        equal(campaign(place, series).contribute(record, "yes"), Contribution.Refused(refusal))
    }

    /** The ids of what this device's last upload held. */
    private var ids = emptyList<String>()

    private fun queue(place: File) {
        campaign(place).grant()
        campaign(place).contribute(record, "yes")
    }

    /** Its next upload, so much later, is answered so. */
    private fun hears(place: File, later: Long, answer: () -> Answer?, queued: Int = 1) {
        now += later
        upload = {
            ids = device(place).sent().map { it.id }
            answer()
        }
        val before = uploads.size
        device(place).runOnce(Duration.ZERO)
        equal(uploads.size, before + 1)
        equal(campaign(place).status().queued, queued)
    }

    private fun rejecting(ids: List<String>, code: String = "window-not-open"): Answer =
        rejecting(ids.associateWith { code }, mapOf("retry-after" to "1"))

    private fun standings() {
        val codes = mapOf(
            "not-yet" to Refusal.NOT_OPEN,
            "closing" to Refusal.CLOSING,
            "closed" to Refusal.CLOSED,
            "full" to Refusal.FULL,
            "deleted" to Refusal.DELETED,
        )
        for ((word, refusal) in codes) {
            promise("nobody is asked, and nothing spent, where a campaign is $word") { place ->
                state = { standing(word) }
                val campaign = campaign(place)
                equal(campaign.nextStep(), NextStep.Nothing(refusal.code))
                refuses(refusal.code) { campaign.grant() }
                equal(asked.size to place.exists(), 1 to false)
                state = { standing("open") }
                now += DAY
                campaign.grant()
                state = { standing(word) }
                now += DAY
                for (one in listOf(campaign, campaign(place))) {
                    equal(one.nextStep(), NextStep.Nothing(refusal.code))
                    equal(one.contribute(record, "yes"), Contribution.Refused(refusal))
                }
                equal(device(place).campaign("https://elsewhere.example", id, 4.0).nextStep(), NextStep.Nothing(refusal.code))
                equal(device(place).ledger().receipts to asked.size, emptyList<Receipt>() to 3)
                state = { standing("open") }
                now += DAY
                equal(campaign.nextStep(), NextStep.Contribute)
            }
        }
        promise("it is heard once a day, after a restart too, and again where the clock went back") { place ->
            val start = now
            now += DAY - Math.floorMod(now, DAY)
            campaign(place).grant()
            repeat(3) { equal(campaign(place).nextStep(), NextStep.Contribute) }
            now += DAY - 1
            campaign(place).nextStep()
            equal(asked.size, 1)
            now += 1
            repeat(2) { campaign(place).nextStep() }
            equal(asked.size, 2)
            now -= 400 * DAY
            campaign(place).nextStep()
            equal(asked.size, 3)
            now = start
        }
        promise("answering asks nobody how a campaign stands, and who answered, declined or switched off does not either") { place ->
            campaign(place).grant()
            now += DAY
            campaign(place).contribute(record, "yes")
            campaign(place).nextStep()
            val other = fresh()
            campaign(other).withdraw()
            campaign(other).nextStep()
            val off = fresh()
            device(off).enabled = false
            equal(campaign(off).refusal(), Refusal.SWITCHED_OFF)
            equal(asked.size, 1)
        }
        val odd: List<() -> Answer> = listOf(
            { throw IOException("no network") }, { throw IllegalStateException("of the app's own") }, { problem(503, "busy") },
            { problem(404, "not-found") }, { standing("paused") }, { Answer(200, emptyMap(), "<html>".toByteArray()) },
            { Answer(200, emptyMap(), "[1]".toByteArray()) }, { Answer(200, emptyMap(), """{"state": ["closed"]}""".toByteArray()) },
            { Answer(200, emptyMap(), ("""{"state": "closed"}""" + " ".repeat(1024)).toByteArray()) },
        )
        for ((number, answer) in odd.withIndex()) {
            promise("what cannot be heard or understood stops nobody: ${number + 1}") { place ->
                state = answer
                val campaign = campaign(place)
                check(campaign.nextStep() is NextStep.Ask)
                campaign.grant()
                equal(campaign.nextStep(), NextStep.Contribute)
                equal(asked.size, 1)
            }
        }
        promise("a try that failed is not repeated for ten minutes, unless the clock went back") { place ->
            state = { problem(503, "busy") }
            val campaign = campaign(place)
            for ((wait, tries) in listOf(0L to 1, 1L to 1, 599_998L to 1, 1L to 2, -1L to 3)) {
                now += wait
                campaign.nextStep()
                equal(asked.size, tries)
            }
        }
        promise("what is kept of it and is none of it stops nobody") { place ->
            campaign(place).grant()
            for (kept in listOf("", "no time", "1e999 closed", "x closed", "$now", "$now shut", "1 closed", "closed")) {
                File(place, "state-$id").run {
                    check(exists())
                    writeText(kept)
                }
                equal(campaign(place).nextStep(), NextStep.Contribute)
            }
        }
        promise("a storage that keeps nothing of it, or gives nothing, keeps nobody") { place ->
            campaign(place).grant()
            val files = FileStorage(place)
            val storage = object : Storage by files {
                override fun read(name: String) = if ("state" in name) error("unreadable") else files.read(name)
                override fun change(name: String, change: (String?) -> String?) =
                    if ("state" in name) throw LdpException("storage-unavailable") else files.change(name, change)
            }
            val device = Device(storage, 10.0, Policy(), transport) { now }
            equal(device.campaign(url, id, 4.0).nextStep(), NextStep.Contribute)
        }
        promise("of a thousand new devices nobody is asked, and nothing spent, after a closing, a filling and a deletion") {
            Thousand(plain, record).askNobody()
        }
        promise("a thousand devices lose nothing over a day of a wrong clock") { Thousand(plain, record).loseNothing() }
    }

    private fun inSeries() {
        promise("a device answers a series in its window and in no other, and once") { place ->
            val own = early(place)
            val window = ((own - first) / WEEK).toInt()
            for (week in 0 until window) {
                for (moment in listOf(0, WEEK - 1)) {
                    now = first + week * WEEK + moment
                    refused(place, Refusal.WINDOW_NOT_OPEN)
                }
            }
            now = own
            equal(campaign(place, series).nextStep(), NextStep.Contribute)
            val receipt = (campaign(place, series).contribute(record, "yes") as Contribution.Answered).receipt
            equal(receipt.questions.map { it / series.questions.size }, listOf(window))
            for (week in -1..series.windows!!.count) {
                now = first + week * WEEK // also where the clock is set back
                equal(campaign(place, series).nextStep(), NextStep.Nothing("answered"))
                equal(campaign(place, series).contribute(record, "no"), Contribution.Answered(receipt))
            }
            equal(device(place).runOnce(), true)
            equal(uploads.size, 1)
        }
        promise("a device that was off in its window answers in none") { place ->
            val end = early(place) + WEEK
            val last = series.windows!!.opens(series.windows.count).toEpochMilli()
            now = end
            while (now <= last) {
                refused(place, Refusal.WINDOW_OVER)
                now += WEEK
            }
            now += 30 * 86_400_000L
            refused(place, Refusal.CLOSED)
            now = end - WEEK - 1 // the clock is set back: it may still answer in its window, and nowhere else
            refused(place, Refusal.WINDOW_NOT_OPEN)
            equal(device(place).ledger().receipts to uploads.size, emptyList<Receipt>() to 0)
        }
        promise("who has a secret is asked about a series while its window is not over") { place ->
            now = first - 1
            campaign(place).grant()
            val own = campaign(place, series).window()!!
            now = own.endExclusive.toEpochMilli()
            equal(campaign(place, series).nextStep(), NextStep.Nothing("window-over"))
            refuses("window-over") { campaign(place, series).grant() }
            now = own.start.toEpochMilli() - 1
            check(campaign(place, series).nextStep() is NextStep.Ask)
            campaign(place, series).grant()
            refused(place, Refusal.WINDOW_NOT_OPEN)
        }
        promise("what the server finds too early stays queued, and the same bytes are sent later") { place ->
            now = early(place)
            campaign(place, series).contribute(record, "yes")
            upload = { rejecting(device(place).sent().map { it.id }) }
            repeat(3) { tries ->
                equal(device(place).runOnce(Duration.ZERO), false)
                val told = campaign(place, series).status().run { listOf(fate, queued, problem, retries) }
                equal(told, listOf(Fate.ON_ITS_WAY, 1, "window-not-open", tries + 1))
                now += 3_600_000
            }
            upload = { yes }
            equal(device(place).runOnce(), true)
            equal(campaign(place, series).status().run { fate to problem }, Fate.ARRIVED to null)
            equal(uploads.size to uploads.toSet().size, 4 to 1)
        }
        promise("of several reports those that the server finds too early alone are sent again") { place ->
            now = early(place, ofMany)
            campaign(place, ofMany).contribute(record, "yes")
            upload = { rejecting(device(place).sent().take(1).map { it.id }) }
            equal(device(place).runOnce(Duration.ZERO), false)
            equal(campaign(place, ofMany).status().run { listOf(fate, queued, sent) }, listOf(Fate.ON_ITS_WAY, 1, 3))
            upload = { yes }
            now += 3_600_000
            equal(device(place).runOnce(), true)
            equal(campaign(place, ofMany).status().run { fate to sent }, Fate.ARRIVED to 4)
            equal(uploads.map { it.length }.distinct().size, 1)
            check(uploads.last().trimEnd('0').length < uploads.first().length / 2)
        }
        promise("an answer is given up when its window has been over for a week") { place ->
            now = early(place)
            val over = now + 2 * WEEK
            campaign(place, series).contribute(record, "yes")
            upload = { null }
            while (campaign(place, series).status().fate != Fate.EXPIRED) {
                check(now <= over + 2 * 86_400_000L)
                now += 86_400_000
                device(place).runOnce(Duration.ZERO)
            }
            check(now > over)
        }
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
            upload = { yes }
            now += 86_400_000
            equal(device(place).runOnce(), true)
            equal(uploads.size to uploads.toSet().size, 4 to 1)
            equal(campaign(place).status().run { listOf(fate, queued, sent, retries) }, listOf(Fate.ARRIVED, 0, 1, 3))
            equal(campaign(place).nextStep(), NextStep.Nothing("answered"))
            equal(device(place).sent().single().let { it.payload in uploads[0] && it.id in uploads[0] }, true)
            equal("\"fate\":\"arrived\"" in device(place).export(), true)
        }
        promise("an interrupt ends a wait with a code, stays set, and spends nothing") { place ->
            campaign(place).grant()
            fun interrupted(call: () -> Any?): Any? {
                Thread.currentThread().interrupt()
                return try {
                    call()
                } catch (error: LdpException) {
                    error.code
                } to Thread.interrupted()
            }
            equal(interrupted { campaign(place).contribute(record, "yes") }, "storage-busy" to true)
            equal(interrupted { campaign(place).nextStep() }, NextStep.Nothing("cancelled") to true)
            equal(device(place).ledger().receipts.size, 0)
            equal(campaign(place).nextStep(), NextStep.Contribute)
        }
        promise("a No is remembered") { place ->
            equal(campaign(place).withdraw(), Withdrawal(0, 0, 0.0))
            equal(campaign(place).nextStep(), NextStep.Nothing("declined"))
            refuses("consent-missing") { campaign(place).contribute(record, "yes") }
        }
        promise("a campaign that cannot be had says why") { place ->
            val nowhere = device(place).campaign(url, "A".repeat(43), maxEpsilon = 4.0)
            equal(nowhere.nextStep(), NextStep.Nothing("no-model"))
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
        promise("the cap of all campaigns is held to the last bit") { _ ->
            fun refused(cap: Double, vararg spent: Double) = State(
                campaigns = spent.withIndex().associate { (number, epsilon) ->
                    "$number" to Entry(Consent(url), Receipt("$number", "", null, epsilon, listOf(0), 0, url))
                },
            ).refusal(plain, url, 1.0, cap, now)
            equal(listOf(refused(1.0), refused(2.0, 1.0), refused(1.5, 0.25, 0.25)), listOf(null, null, null))
            equal(refused(1.0, 1e-17), Refusal.ABOVE_TOTAL)
            equal(refused(2.0, 1.0, 1e-17), Refusal.ABOVE_TOTAL)
            equal(refused(2.0, *DoubleArray(10) { 0.1 }), Refusal.ABOVE_TOTAL) // ten doubles of 0.1 are more than 1
        }
        promise("the first campaign fits where the cap is what it promises, though that double is above the decimal") { _ ->
            equal(small.realisedEpsilon, 0.1)
            equal(State().refusal(small, url, 0.1, 0.1, now), null)
            equal(State().refusal(small, url, 0.1, Math.nextDown(0.1), now), Refusal.ABOVE_TOTAL)
        }
        promise("the log says when a report left for the first time") { place ->
            queue(place)
            val first = now
            upload = { null }
            device(place).runOnce(Duration.ZERO)
            now += DAY
            upload = { yes }
            equal(device(place).runOnce(), true)
            equal(device(place).sent().map { it.at to it.reply }, listOf(first to "arrived"))
        }
        promise("what is due when the upload of another ends gets a moment anew, and what is due later keeps its own") { _ ->
            val due = Entry(
                Consent(url, grantedAt = 1),
                Receipt("", "", null, 1.0, listOf(0), 0, url, Fate.ON_ITS_WAY),
                listOf(Kept("00".repeat(16), 0, "", "00")),
                due = now,
            )
            val state = State(campaigns = mapOf("sent" to due, "due" to due, "later" to due.copy(due = now + 1)))
            val after = state.answered(Batch("sent", url, due.reports, 0), yes, now, Policy(), 0.5).campaigns
            equal(after.getValue("due").due to after.getValue("later").due, null to now + 1)
        }
        promise("a yes to another address takes the place of the first, and is asked for anew at that one") { place ->
            val other = device(place).campaign("$url/other", id, maxEpsilon = 4.0)
            other.load(plain.document)
            campaign(place).grant()
            equal((other.nextStep() as NextStep.Ask).reason, "other-recipient")
            other.grant()
            equal(other.nextStep(), NextStep.Contribute)
            equal((campaign(place).nextStep() as NextStep.Ask).reason, "other-recipient")
        }
        promise("numbers and lengths are written in the fewest bytes, on both sides of every boundary") { _ ->
            val zeros = "c410" + "00".repeat(16)
            val numbers = mapOf(
                0 to "00",
                127 to "7f",
                128 to "cc80",
                255 to "ccff",
                256 to "cd0100",
                65_535 to "cdffff",
                65_536 to "ce00010000",
            )
            for ((number, written) in numbers) {
                equal(hex(packed(listOf(Report(number, ByteArray(16), ByteArray(1))))), "92029193$written${zeros}c40100")
            }
            val lengths = mapOf(0 to "c400", 255 to "c4ff", 256 to "c50100", 65_535 to "c5ffff", 65_536 to "c600010000")
            for ((length, written) in lengths) {
                equal(hex(packed(listOf(Report(0, ByteArray(16), ByteArray(length))))), "9202919300$zeros$written" + "00".repeat(length))
            }
        }
        promise("what was heard of one campaign says nothing of another") { place ->
            now = first - 1
            campaign(place).grant()
            campaign(place, series).grant()
            now += DAY
            state = { standing("closed") }
            equal(campaign(place).nextStep(), NextStep.Nothing("campaign-closed"))
            state = { standing("open") }
            check(campaign(place, series).nextStep() != NextStep.Nothing("campaign-closed"))
            equal(campaign(place).nextStep(), NextStep.Nothing("campaign-closed"))
        }
        promise("a window is open from its first millisecond to the first of the next") { place ->
            val opens = early(place)
            val ends = campaign(place, series).window()!!.endExclusive.toEpochMilli()
            for ((time, step) in listOf(
                opens - 1 to NextStep.Nothing("window-not-open"),
                opens to NextStep.Contribute,
                ends - 1 to NextStep.Contribute,
                ends to NextStep.Nothing("window-over"),
            )) {
                now = time
                equal(campaign(place, series).nextStep(), step)
            }
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
        promise("a final word takes the report off the queue, a doubt does not, and Retry-After is waited for") { place ->
            campaign(place).grant()
            campaign(place).contribute(record, "yes")
            upload = { problem(503, "busy", "retry-after" to "100") }
            equal(device(place).runOnce(Duration.ZERO), false)
            check(campaign(place).status().nextTry!! >= now + 100_000)
            upload = { Answer(404, emptyMap(), "a hotel's login page".toByteArray()) }
            now += 86_400_000
            equal(device(place).runOnce(Duration.ZERO), false)
            equal(campaign(place).status().queued, 1)
            upload = { problem(410, "campaign-deleted") }
            now += DAY
            equal(device(place).runOnce(Duration.ZERO), true)
            equal(campaign(place).status().run { fate to dropped }, Fate.REFUSED to mapOf("campaign-deleted" to 1))
        }
        val words = listOf({ problem(409, "campaign-closed") }, { problem(451, "unavailable") }, { rejecting(ids, "window-over") })
        for ((number, word) in words.withIndex()) {
            promise("final word ${number + 1} counts when heard twice, a day apart") { place ->
                queue(place)
                hears(place, 0, word)
                hears(place, DAY - 1, word)
                now -= 3 * DAY // the clock is set back: the day begins anew
                device(place).runOnce(Duration.ZERO)
                hears(place, DAY / 2, word)
                hears(place, DAY - 1, word)
                hears(place, DAY / 4, { null })
                hears(place, DAY / 4, word, queued = 0)
                equal(campaign(place).status().run { fate to dropped.values.sum() }, Fate.REFUSED to 1)
                equal(uploads.size to uploads.toSet().size, 6 to 1)
            }
        }
        promise("whatever is not final begins the day anew") { place ->
            queue(place)
            val unsettled = { problem(503, "clock-unsettled") }
            val unknown = { problem(404, "unknown-campaign") }
            val closing = { problem(409, "campaign-closing", "retry-after" to "60") }
            val single = listOf({ rejecting(ids, "campaign-closing") }, { rejecting(ids, "clock-unsettled") })
            for (later in listOf(unsettled, unknown, closing) + single) {
                hears(place, DAY, words[0])
                hears(place, DAY, later)
            }
            hears(place, DAY, words[0])
            hears(place, DAY, { yes }, queued = 0)
            equal(campaign(place).status().fate, Fate.ARRIVED)
        }
        promise("what is wrong with the bytes is final at once") { place ->
            queue(place)
            hears(place, 0, { problem(422, "malformed-upload") }, queued = 0)
            equal(campaign(place).status().dropped, mapOf("malformed-upload" to 1))
        }
        promise("no report expires before it could hear its second word") { place ->
            queue(place)
            repeat(10) { hears(place, DAY, { null }) }
            hears(place, 20 * DAY - 1, words[0])
            hears(place, DAY, words[0], queued = 0)
            equal(campaign(place).status().fate, Fate.REFUSED)
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
            upload = { yes }
            equal(device(place).runOnce(), true)
            equal(campaign(place).status().fate, Fate.ARRIVED)
            equal(uploads.toSet().size, 1)
            now -= 40 * 365 * 86_400_000L
        }
        promise("a storage from before final words were heard twice is read") { place ->
            queue(place)
            val file = File(place, "device")
            hears(place, 0, words[0])
            val body = file.readText().drop(43).replace(Regex(",\"heard\":[0-9]+"), "")
            check("heard" !in body)
            // of each report, and of none
            for (older in listOf(body.replace("\"reply\":null", "\"reply\":null,\"heard\":$now"), body)) {
                file.writeText(base64url(sha256(older.toByteArray())) + older)
                equal(campaign(place).status().queued, 1)
            }
            hears(place, DAY, { yes }, queued = 0)
        }
        promise("threads contribute once between them") { place ->
            campaign(place).grant()
            val threads = List(8) {
                kotlin.concurrent.thread {
                    campaign(place).contribute(record, "yes")
                    device(place).runOnce(5.seconds)
                }
            }
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
        promise("what wakes the background thread just before it sleeps is not lost") { place ->
            val install = Install(FileStorage(place), 1.0, Network(transport, Policy()), Policy(), Teller(null) { now }) { now }
            val begun = System.nanoTime()
            install.wake()
            install.sleep(60.seconds)
            check(System.nanoTime() - begun < 30_000_000_000)
        }
        promise("a device that was closed and is started again delivers") { place ->
            val sent = CountDownLatch(1)
            upload = { yes.also { sent.countDown() } }
            device(place).use { device ->
                device.start(0)
                device.close()
                queue(place)
                device.start(0)
                check(sent.await(30, TimeUnit.SECONDS))
            }
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
        inSeries()
        standings()
    }
}
