package org.example.ldpbayes

import java.io.File
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds

/**
 * One install of an app. Making one touches neither network nor storage; nothing is written before somebody decides. Every call
 * blocks, and may be made from any thread but an app's main one.
 *
 * @param maxTotalEpsilon hard cap on the privacy loss over all campaigns.
 * @param log is told each step and each failure with its cause; none unless there is one.
 * @param now milliseconds since 1970.
 * @throws LdpException `bad-cap`.
 */
class Device @JvmOverloads constructor(
    storage: Storage,
    maxTotalEpsilon: Double,
    policy: Policy = Policy(),
    transport: Transport = UrlConnectionTransport,
    log: Log? = null,
    now: () -> Long = System::currentTimeMillis,
) : AutoCloseable {
    /** A device on a folder of its own; see [FileStorage] for where that belongs. */
    constructor(folder: File, maxTotalEpsilon: Double) : this(FileStorage(folder), maxTotalEpsilon)
    private val teller = Teller(log, now)
    private val install =
        Install(storage, checkCap(maxTotalEpsilon), Network(teller.listening(transport), policy), policy, teller, now)
    private var thread: Thread? = null

    /**
     * A campaign, as this device sees it; touches neither network nor storage. [publisher] has to have signed campaign and model;
     * without one the aggregator is believed. Throws [LdpException] `bad-url`, `bad-cap` or `bad-campaign-id`.
     */
    @JvmOverloads
    fun campaign(url: String, id: String, maxEpsilon: Double, publisher: Publisher? = null): DeviceCampaign {
        ensure(isCampaignId(id), "bad-campaign-id")
        val base = Network.checkUrl(url, install.policy.allowPlainHttp)
        return DeviceCampaign(install, base, id, checkCap(maxEpsilon), publisher?.let { Signed(it, install, base, id) })
    }

    /** What was spent in all campaigns; its text is for the person. */
    fun ledger(): Ledger = Ledger(install.state().receipts, install.maxTotalEpsilon)

    /** Every report whose upload began, whatever the server said of it. */
    fun sent(): List<SentReport> = install.state().campaigns.flatMap { (id, entry) ->
        val (url, title) = entry.consent
        val campaign = lazy { install.document(id) }
        entry.reports.mapNotNull { kept ->
            val at = kept.at ?: return@mapNotNull null
            val (asked, said) = campaign.value?.let { inWords(it, kept) } ?: (kept.asked to kept.payload)
            SentReport(id, title, url, asked, said, kept.id, kept.payload, at, kept.reply)
        }
    }

    private fun inWords(campaign: Campaign, kept: Kept): Pair<String, String> {
        val question = campaign.questions[kept.question % campaign.questions.size]
        return asked(campaign, question) to said(campaign, question, unhex(kept.payload))
    }

    /** The person's switch, kept. Off, nothing is answered and nothing is sent; what is queued waits. */
    var enabled: Boolean
        get() = install.state().enabled
        set(value) {
            install.change { it.copy(enabled = value) to Unit }
            install.wake()
        }

    /** A copy of everything that is kept about the person, except the secret, as JSON. */
    fun export(): String = Json.write(install.state().plain())

    /**
     * Deletes everything in the storage. What follows is a new device; what was sent stays sent: an answer that was counted is a number
     * in a sum, and nobody can take it out. How long a server keeps what it could be found by is with the operator ([Campaign.keepDays],
     * where it promises that).
     */
    fun erase() {
        install.storage.clear()
        install.landed()
    }

    /**
     * Delivers what is due within [timeout]; true when nothing is left to send. For hosts with a schedule of their own, such as
     * WorkManager. A first try waits a random time below [firstDelay], which belongs well below [timeout]. Never throws.
     */
    fun runOnce(timeout: Duration, firstDelay: Duration = Duration.ZERO): Boolean {
        val until = System.nanoTime().let { it + timeout.inWholeNanoseconds }
        try {
            while (true) {
                val left = maxOf(0, until - System.nanoTime()).let { (it / 1_000_000).milliseconds }
                val wait = install.step(left, firstDelay) ?: return true
                if (wait > left) return false
                Thread.sleep(wait.inWholeMilliseconds)
            }
        } catch (error: RuntimeException) {
            teller.tell("delivery", "", Teller.codeOf(error), error)
            return false
        } catch (error: InterruptedException) {
            Thread.currentThread().interrupt()
            return false
        }
    }

    /** In milliseconds. */
    @JvmOverloads
    fun runOnce(timeoutMillis: Long = 10_000, firstDelayMillis: Long = 0): Boolean =
        runOnce(timeoutMillis.milliseconds, firstDelayMillis.milliseconds)

    /** Delivers in the background until [close], with a daemon thread; the first try after [Policy.firstDelay] at most. */
    fun start(): Unit = start(install.policy.firstDelay)

    /** The first try after so many milliseconds at most. */
    fun start(firstDelayMillis: Long): Unit = start(firstDelayMillis.milliseconds)

    /** The first try after [firstDelay] at most. */
    @Synchronized
    fun start(firstDelay: Duration) {
        if (thread == null) thread = kotlin.concurrent.thread(isDaemon = true, name = "ldp-bayes") { deliver(firstDelay) }
    }

    /** Stops the background delivery; unsent reports stay queued. */
    @Synchronized
    override fun close() {
        thread?.interrupt()
        thread = null
    }

    private fun deliver(firstDelay: Duration) {
        try {
            while (!Thread.interrupted()) {
                val wait = try {
                    install.step(install.policy.requestTimeout, firstDelay)
                } catch (error: RuntimeException) {
                    teller.tell("delivery", "", Teller.codeOf(error), error)
                    null // a storage that fails is left alone for a while
                }
                install.sleep(minOf(wait ?: IDLE_CHECK, IDLE_CHECK))
            }
        } catch (error: InterruptedException) {
            // close() was called
        }
    }

    private fun checkCap(cap: Double): Double = cap.also { ensure(it > 0 && it.isFinite(), "bad-cap") }
}

/** What the campaigns of a device share: its storage, its state in it, and one sender for all of them. */
internal class Install(
    val storage: Storage,
    val maxTotalEpsilon: Double,
    val network: Network,
    val policy: Policy,
    val teller: Teller,
    val now: () -> Long,
) {
    @Suppress("PLATFORM_CLASS_MAPPED_TO_KOTLIN")
    private val changed = Object()
    private var woken = false
    fun state(): State = State.read(storage.read(DEVICE))

    /** The document that is stored beside a consent; null where there is none that can be read. */
    fun document(id: String): Campaign? = storage.read("campaign-$id")?.let { text ->
        try {
            Campaign.parse(text.toByteArray(), id)
        } catch (error: LdpException) {
            null
        }
    }

    /** Whether somebody has decided anything yet. */
    fun exists(): Boolean = storage.read(DEVICE) != null

    /** Changes the state in one transaction; [change] gives the state after it, and what to return. */
    fun <T> change(change: (State) -> Pair<State, T>): T {
        var told: Result<T>? = null
        storage.change(DEVICE) { before ->
            val known = State.read(before).let { if (it.secret.isEmpty()) it.copy(secret = hex(makeSecret())) else it }
            val (after, result) = change(known)
            told = Result.success(result)
            if (before != null && after == known) before else after.write()
        }
        return told!!.getOrThrow()
    }

    /** Waits for an upload under way, in whichever process, two seconds at most. */
    fun landed() {
        if (exists()) storage.exclusive(LANDING_TIMEOUT.inWholeMilliseconds) {}
    }

    /** One step of the delivery. How long it is until the next one; null where nothing waits. */
    fun step(wait: Duration, firstDelay: Duration): Duration? {
        if (!exists()) return null
        val next = storage.exclusive(wait.inWholeMilliseconds) { send(firstDelay) ?: NEVER }
        return next?.takeUnless { it == NEVER } ?: if (isIdle()) null else policy.backoffBase
    }

    private fun isIdle(): Boolean = state().planned(now(), Duration.ZERO, policy) { 0.0 }.wait == null
    private fun send(firstDelay: Duration): Duration? {
        val plan = change { state -> state.planned(now(), firstDelay, policy, ::jitter).let { it.state to it } }
        val batch = plan.batch ?: return plan.wait
        val answer = network.upload("${batch.url}/v1/campaigns/${batch.campaignId}/reports", batch.body())
        if (exists()) change { it.answered(batch, answer, now(), policy, jitter()) to Unit }
        return Duration.ZERO
    }

    fun wake(): Unit = synchronized(changed) {
        woken = true
        changed.notifyAll()
    }

    /** Sleeps, until somebody wakes it, or did since the last sleep. */
    fun sleep(wait: Duration) = synchronized(changed) {
        val until = System.nanoTime() + wait.inWholeNanoseconds
        while (!woken) {
            val left = (until - System.nanoTime()) / 1_000_000
            if (left <= 0) break
            changed.wait(left)
        }
        woken = false
    }

    private companion object {
        const val DEVICE = "device"
        val NEVER = Duration.INFINITE
        fun jitter(): Double = randomBytes(4).fold(0.0) { sum, byte -> (sum + (byte.toInt() and 255)) / 256 }
    }
}
