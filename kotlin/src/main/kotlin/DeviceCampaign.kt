package org.example.ldpbayes

import java.time.Instant
import java.util.concurrent.atomic.AtomicBoolean
import kotlin.time.Duration
import kotlin.time.Duration.Companion.milliseconds

/** Why a device does not answer now, and a person may agree all the same. */
private val AGREEABLE = setOf(Refusal.OTHER_RECIPIENT, Refusal.WINDOW_NOT_OPEN)

/** What an app has to do now. */
sealed interface NextStep {
    /**
     * Show the person the [campaign]'s title, purpose and `realisedEpsilon`, and `decide` by what they say. [reason] is
     * `other-recipient` where they have agreed to another address.
     */
    data class Ask(val campaign: Campaign, val reason: String? = null) : NextStep

    /** The person has agreed, and no answer is given yet; in a series, this device's window is open. */
    object Contribute : NextStep

    /**
     * [reason] is `answered`, `declined`, or the code of what stands against answering: of a [Refusal], of the storage, of the network,
     * of a document that is none, `crowd-unsupported`, `issuer-unsupported`, `no-signatures`; `unexpected` for an error that is none of this library's.
     */
    data class Nothing(val reason: String) : NextStep
}

/** What became of a call of `contribute`. */
sealed interface Contribution {
    /** The answer is on disk, from now on or already, and is sent once. */
    data class Answered(val receipt: Receipt) : Contribution

    /** The device does not answer; nothing was drawn and nothing spent. */
    data class Refused(val refusal: Refusal) : Contribution
}

/** What a withdrawal could do: reports deleted, how many of them may arrive all the same, and the loss given back. */
data class Withdrawal(val deleted: Int, val onItsWay: Int, val refunded: Double)

/** What happened so far in one campaign; [nextTry] is in milliseconds since 1970. */
data class Status(
    /** Whether the person agrees; null until somebody decided. */
    val consent: Boolean?,
    /** What became of the contribution. */
    val fate: Fate?,
    /** Reports that wait. */
    val queued: Int,
    /** Reports that the server says it has. */
    val sent: Int,
    /** Tries that failed. */
    val retries: Int,
    /** Reports that left the queue otherwise, by reason. */
    val dropped: Map<String, Int>,
    /** When the next try is due. */
    val nextTry: Long?,
    /** The code of the last failure. */
    val problem: String?,
)

/** One campaign, as one device sees it; made by [Device.campaign]. Safe with any number of threads and processes. */
class DeviceCampaign internal constructor(
    private val install: Install,
    private val url: String,
    /** The campaign's id. */
    val id: String,
    private val maxEpsilon: Double,
    private val signed: Signed?,
) {
    private val path = "$url/v1/campaigns/$id"
    private val stored = "campaign-$id"
    private val standing = Standing(install, path, id)

    private val storedModel = "model-$id" + signed?.let { "-${it.digest}" }.orEmpty()
    private val renewing = AtomicBoolean()

    @Volatile
    private var model: ByteArray? = null // the newest of this life

    @Volatile
    private var atHand: Campaign? = null

    /**
     * The verified campaign: at hand, or fetched. Nothing is stored before [grant]. Throws [LdpException] for what is not what its id
     * and its epsilon promise, or not signed, and [AwayException], `timeout` at the end of the time.
     */
    fun fetch(timeout: Duration): Campaign = inTime(timeout, ::fetch)

    /** Within five seconds unless told otherwise, in milliseconds. */
    @JvmOverloads
    fun fetch(timeoutMillis: Long = ASKING_MILLIS): Campaign = fetch(timeoutMillis.milliseconds)
    private fun fetch(until: Deadline): Campaign {
        signed?.refresh(until)
        return atHand() ?: load(install.network.get(path, Campaign.LARGEST_DOCUMENT, until))
    }

    /** Takes the document from the app instead of fetching it; verified the same way. */
    fun load(document: ByteArray): Campaign = Campaign.parse(document, id).also { atHand = it }

    /**
     * What an app has to do now; call it at every start. It never throws. Whatever the person decides is remembered: nobody is asked
     * twice, and nobody whom the storage could not remember.
     */
    fun nextStep(timeout: Duration): NextStep = stepAfter("next-step", timeout) {}

    /** Within five seconds unless told otherwise, in milliseconds. */
    @JvmOverloads
    fun nextStep(timeoutMillis: Long = ASKING_MILLIS): NextStep = nextStep(timeoutMillis.milliseconds)

    /**
     * Takes the person's answer to `Ask`, by [grant] or [withdraw]; the next step, which is what to do now. Never throws: where the
     * answer could not be kept, the reason says why, and the person is asked again.
     */
    fun decide(agreed: Boolean, timeout: Duration): NextStep = stepAfter("decide", timeout) { if (agreed) grant(it) else withdraw() }

    /** Within five seconds unless told otherwise, in milliseconds. */
    @JvmOverloads
    fun decide(agreed: Boolean, timeoutMillis: Long = ASKING_MILLIS): NextStep = decide(agreed, timeoutMillis.milliseconds)

    private fun stepAfter(name: String, timeout: Duration, first: (Deadline) -> Unit): NextStep {
        val (step, failure) = try {
            inTime(timeout) { until ->
                first(until)
                step(until)
            } to null
        } catch (error: Exception) {
            // Whatever it is, it must not stop the app at every start.
            NextStep.Nothing((error as? LdpException)?.code ?: "unexpected") to error
        }
        val code = when (step) {
            is NextStep.Ask -> step.reason ?: "ask"
            NextStep.Contribute -> "contribute"
            is NextStep.Nothing -> step.reason
        }
        install.teller.tell(name, id, code, failure)
        return step
    }

    private fun step(until: Deadline): NextStep {
        val entry = entry()
        if (entry?.receipt != null) return NextStep.Nothing("answered")
        if (entry?.given == false) return NextStep.Nothing("declined")
        val campaign = fetch(until)
        val refusal = refusal(until)
        if (refusal != null && refusal !in AGREEABLE) return NextStep.Nothing(refusal.code)
        install.storage.check()
        return when {
            entry == null -> NextStep.Ask(campaign)
            refusal == Refusal.OTHER_RECIPIENT -> NextStep.Ask(campaign, refusal.code)
            refusal == null -> NextStep.Contribute
            else -> NextStep.Nothing(refusal.code)
        }
    }

    /** Why this device would refuse the campaign, null where it would answer: to know before anybody is asked. */
    fun refusal(timeout: Duration): Refusal? = inTime(timeout, ::refusal)

    /** Within five seconds unless told otherwise, in milliseconds. */
    @JvmOverloads
    fun refusal(timeoutMillis: Long = ASKING_MILLIS): Refusal? = refusal(timeoutMillis.milliseconds)
    private fun refusal(until: Deadline): Refusal? {
        val campaign = fetch(until)
        val state = install.state()
        val entry = state.campaigns[id]
        if (entry?.receipt != null) return null
        if (state.enabled) standing.hear(keep = entry?.given == true, until)
        return signed?.refusal() ?: refused(state, campaign)
    }

    /**
     * What this device would be asked and would say of a record of class [label], and what is wrong with it: for an app's tests and
     * debug builds. Nothing is drawn, stored or sent. Throws [LdpException] `not-fetched`.
     */
    @JvmOverloads
    fun preview(record: Map<String, Any?>, label: Any? = null): Preview = previewOf(inHand(), record, label)

    /** The campaign's promise in words for the person who is asked, and for a privacy policy. Throws [LdpException] `not-fetched`. */
    fun explained(): Explanation = explained(inHand(), url)

    /** When this device answers, in a series; null in any other campaign, and before anybody has decided. Throws what [fetch] throws. */
    fun window(): OpenEndRange<Instant>? = fetch().let { install.state().window(it) }

    /**
     * The person has agreed to this campaign, and to sending the answer to this address. Throws what [fetch] throws, and
     * [RefusedException] where [refusal] says so; nothing was then kept.
     */
    fun grant(timeout: Duration): Unit = install.teller.step("grant", id) { inTime(timeout, ::grant) }

    /** Within five seconds unless told otherwise, in milliseconds. */
    @JvmOverloads
    fun grant(timeoutMillis: Long = ASKING_MILLIS): Unit = grant(timeoutMillis.milliseconds)
    private fun grant(until: Deadline) {
        val campaign = fetch(until)
        refusal(until)?.let { if (it !in AGREEABLE) throw RefusedException(it) }
        until.check() // nothing is stored for who was told that it was too late
        install.storage.change(stored) { String(campaign.document, Charsets.UTF_8) }
        signed?.keep()
        standing.keep()
        install.change { state ->
            val entry = state.campaigns[id]
            val consent = Consent(url, campaign.title, campaign.purpose, campaign.realisedEpsilon, grantedAt = install.now())
            val known = entry != null && entry.given && entry.consent.url == url
            (if (known) state else state + (id to (entry?.copy(consent = consent) ?: Entry(consent)))) to Unit
        }
    }

    /**
     * The person no longer agrees, or never did: what is unsent is deleted, and nobody asks again. Where nothing had begun to leave, its
     * loss is given back and the person may agree again. What has begun is waited for, a little.
     */
    fun withdraw(): Withdrawal = install.teller.step("withdraw", id, work = ::withdrawn)
    private fun withdrawn(): Withdrawal {
        val (withdrawal, begun) = install.change { state ->
            val entry = state.campaigns[id] ?: Entry(Consent(url))
            val deleted = entry.queued.size
            val receipt = entry.receipt?.takeIf { deleted > 0 }
            val begun = receipt != null && receipt.fate != Fate.WAITING
            val after = entry.copy(
                consent = entry.consent.copy(withdrawnAt = install.now()),
                receipt = if (receipt == null) entry.receipt else receipt.copy(fate = Fate.DELETED).takeIf { begun },
                reports = entry.reports.filter { it.at != null },
            )
            val refunded = if (receipt != null && !begun) receipt.epsilon else 0.0
            (state + (id to after)) to (Withdrawal(deleted, 0, refunded) to begun)
        }
        install.landed()
        return if (begun && receipt()?.fate != Fate.ARRIVED) withdrawal.copy(onItsWay = withdrawal.deleted) else withdrawal
    }

    /** Whether the person agrees. */
    val consented: Boolean get() = entry()?.given == true

    /**
     * Answers the campaign, once: a second call returns the first receipt, whatever the record now says. The ledger's debit, the answer
     * and its place in the queue are on disk before this returns and before anything is sent; the network is not used.
     *
     * Throws [LdpException], and nothing was then spent: `consent-missing`, `not-fetched`, `undeclared-label`, `no-randomness`, and
     * what the storage throws.
     */
    @JvmOverloads
    fun contribute(record: Map<String, Any?>, label: Any? = null): Contribution =
        install.teller.step("contribute", id, { (it as? Contribution.Refused)?.refusal?.code }) { contributed(record, label) }

    private fun contributed(record: Map<String, Any?>, label: Any?): Contribution {
        answered(install.state())?.let { return it }
        val campaign = inHand()
        signed?.refusal()?.let { return Contribution.Refused(it) }
        val made = install.change { state ->
            val known = answered(state) ?: refused(state, campaign)?.let(Contribution::Refused)
            if (known != null) state to known else answer(state, campaign, record, label)
        }
        install.wake()
        return made
    }

    /** What this device has contributed. */
    fun receipt(): Receipt? = entry()?.receipt

    /** What happened so far. */
    fun status(): Status {
        val entry = entry()
        val queued = entry?.queued?.size ?: 0
        val replies = entry?.reports.orEmpty().mapNotNull { it.reply }.groupingBy { it }.eachCount()
        return Status(
            entry?.given,
            entry?.receipt?.fate,
            queued,
            replies[ARRIVED] ?: 0,
            entry?.retries ?: 0,
            replies - ARRIVED,
            entry?.due.takeIf { queued > 0 },
            entry?.problem,
        )
    }

    /**
     * The campaign's model: at once as it was kept, and the newest is fetched for the next call; else as it can be had. The request is
     * the same bytes from every device; only once the person has agreed the model is stored. Throws [LdpException].
     */
    fun classifier(timeout: Duration): Classifier = install.teller.step("classifier", id) { known(timeout) }
    private fun known(timeout: Duration): Classifier {
        val kept = model ?: unlessFails { install.storage.read(storedModel)?.toByteArray() }
        val classifier = kept?.let { unlessFails { Classifier.parse(it, label()) } } ?: return inTime(timeout, ::newest)
        if (renewing.compareAndSet(false, true)) {
            kotlin.concurrent.thread(isDaemon = true, name = "ldp-bayes-model") {
                unlessFails { newest(Deadline(install.policy.requestTimeout)) }
                renewing.set(false)
            }
        }
        return classifier
    }

    /** Within five seconds unless told otherwise, in milliseconds. */
    @JvmOverloads
    fun classifier(timeoutMillis: Long = ASKING_MILLIS): Classifier = classifier(timeoutMillis.milliseconds)

    /** The model as it stands now, kept for later calls: where it cannot be stored, as long as this lives. */
    private fun newest(until: Deadline): Classifier {
        val bytes = install.network.get("$path/model", Network.LARGEST_MODEL, until)
        signed?.checkModel(bytes, until)
        return Classifier.parse(bytes, label()).also {
            model = bytes
            unlessFails { if (consented) install.storage.change(storedModel) { String(bytes, Charsets.UTF_8) } }
        }
    }

    private fun label(): Label? = unlessFails { atHand()?.label }
    private inline fun <T> unlessFails(work: () -> T): T? = try {
        work()
    } catch (error: Exception) {
        null
    }

    private fun answer(state: State, campaign: Campaign, record: Map<String, Any?>, label: Any?): Pair<State, Contribution> {
        val reports = perturb(campaign, record, label, unhex(state.secret))
        val at = install.now()
        val (title, size) = campaign.title to campaign.questions.size
        val window = campaign.windows?.name(reports[0].question / size) ?: ""
        val questions = reports.map { it.question }
        val receipt = Receipt(id, title, campaign.study, campaign.realisedEpsilon, questions, at, url, window = window)
        val kept = reports.map {
            Kept(hex(it.id), it.question, asked(campaign, campaign.questions[it.question % size]), hex(it.payload))
        }
        val aged = at + install.policy.reportAge.inWholeMilliseconds
        val ends = state.window(campaign)?.endExclusive ?: campaign.closes
        val expires = minOf(aged, ends?.let { it.toEpochMilli() + CLOSING_GRACE.inWholeMilliseconds } ?: aged)
        val entry = state.campaigns.getValue(id).copy(
            receipt = receipt,
            reports = kept,
            expires = expires,
            due = null,
            uploadBytes = campaign.uploadBytes,
        )
        return (state + (id to entry)) to Contribution.Answered(receipt)
    }

    /** An answer given before. */
    private fun answered(state: State): Contribution? {
        val entry = state.campaigns[id]
        ensure(entry?.given == true, "consent-missing") { "nobody has agreed to this campaign; call grant() once they have" }
        return entry?.receipt?.let(Contribution::Answered)
    }

    private fun refused(state: State, campaign: Campaign): Refusal? {
        val own = state.refusal(campaign, url, maxEpsilon, install.maxTotalEpsilon, install.now())
        // Answering asks nobody: the time of a request would tell the time of the event.
        return if (own == null || own in AGREEABLE) standing.refusal() ?: own else own
    }

    private fun entry(): Entry? = install.state().campaigns[id]

    /** Where what is stored is damaged, it is fetched again. */
    private fun atHand(): Campaign? = atHand ?: install.document(id)?.also { atHand = it }
    private fun inHand(): Campaign = atHand() ?: throw LdpException("not-fetched", "call fetch(), now or when the app starts")
}
