package org.example.ldpbayes

/** Why a device answers no campaign that stands so; any other word, of a later aggregator, stops nobody. */
private val STATES = mapOf(
    "not-yet" to Refusal.NOT_OPEN,
    "closing" to Refusal.CLOSING,
    "closed" to Refusal.CLOSED,
    "full" to Refusal.FULL,
    "deleted" to Refusal.DELETED,
)

/**
 * How one campaign stands, as its aggregator said on this day (UTC). Where that cannot be heard, or is not understood, the campaign
 * counts as open, and it is asked again ten minutes later at the earliest.
 */
internal class Standing(private val install: Install, private val path: String, id: String) {
    private class Said(val state: String, val at: Long)

    private val stored = "state-$id"
    private var tried: Long? = null

    @Volatile
    private var said: Said? = null

    /** Why no new answer is taken, as far as that was heard on this day. */
    fun refusal(): Refusal? = fresh()?.let { STATES[it.state] }

    /** Asks where that was not done on this day; [keep]s what is heard beside the document. Half of the time is for it. Throws nothing. */
    @Synchronized
    fun hear(keep: Boolean, until: Deadline) {
        val now = install.now()
        said = fresh() ?: kept() ?: said
        if (fresh() != null || tried?.let { now - it in 0 until STATE_RETRY.inWholeMilliseconds } == true) return
        tried = now
        val answer = install.network.state("$path/state", until.left() / 2) ?: return
        val state = attempt { (Json.parse(String(answer, Charsets.UTF_8)) as? Map<*, *>)?.get("state") as? String } ?: return
        said = Said(state, now)
        if (keep) keep()
    }

    /** Has what was heard beside the document, if that can be done. */
    fun keep() {
        said?.let { attempt { install.storage.change(stored) { _ -> "${it.at} ${it.state}" } } }
    }

    private fun kept(): Said? {
        val (at, state) = attempt { install.storage.read(stored) }?.split(" ", limit = 2)?.takeIf { it.size == 2 } ?: return null
        return at.toLongOrNull()?.let { Said(state, it) }
    }

    private fun fresh(): Said? = said?.takeIf { day(it.at) == day(install.now()) }
    private fun day(time: Long): Long = Math.floorDiv(time, STATE_AGE.inWholeMilliseconds)

    /** Whatever fails here, also in a storage of the app's own, nobody is kept by it. */
    private inline fun <T> attempt(work: () -> T): T? = try {
        work()
    } catch (error: RuntimeException) {
        null
    }
}
