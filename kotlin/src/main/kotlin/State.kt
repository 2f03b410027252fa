package org.example.ldpbayes

/** What became of a contribution. */
enum class Fate(internal val words: String) {
    /** Nothing of it has left. */
    WAITING("on this device; nothing of it has left"),

    /** An upload has begun. */
    ON_ITS_WAY("an upload has begun, and is not known to have arrived"),

    /** The server says that it has it, or a relay that will bring it there. */
    ARRIVED("handed over"),

    /** The server says so; nobody can check it. */
    REFUSED("the server says that it refused it; it is not sent again"),

    /** It was tried for too long. */
    EXPIRED("given up after its time; it may have arrived"),

    /** It was withdrawn after an upload had begun. */
    DELETED("deleted by a withdrawal after an upload had begun; it may have arrived"),
    ;

    /** As all clients export it. */
    internal val code: String get() = name.lowercase().replace('_', '-')
}

/**
 * One contribution, made once and for good; [at] is the device's clock, in milliseconds since 1970. [questions] are numbered as in
 * reports: in a series window * number of questions + index.
 */
data class Receipt(
    val campaignId: String,
    val title: String,
    val study: String?,
    val epsilon: Double,
    val questions: List<Int>,
    val at: Long,
    val url: String,
    val fate: Fate = Fate.WAITING,
    /** Of a series: which of its windows, in words. */
    val window: String = "",
)

/** What a person decided, with a copy of what it was about; times are in milliseconds since 1970. */
internal data class Consent(
    val url: String,
    val title: String = "",
    val purpose: String = "",
    val epsilon: Double = 0.0,
    val grantedAt: Long? = null,
    val withdrawnAt: Long? = null,
) {
    /** Whether the person agrees. */
    val given: Boolean get() = grantedAt != null && withdrawnAt == null
}

/**
 * A report in the queue, or one that left it. [at]: when its first upload began, null where nothing of it has left. [reply]: null
 * where no answer has decided, [ARRIVED], or the code with which the server refused it.
 */
internal data class Kept(
    val id: String,
    val question: Int,
    val asked: String,
    val payload: String,
    val at: Long? = null,
    val reply: String? = null,
)

internal const val ARRIVED = "arrived"

/**
 * All about one campaign: [attempts] of what is in front that failed in a row, reports in an upload at [most] where that is limited, and
 * since when it is refused with words that count when they are [heard] again a day later.
 */
internal data class Entry(
    val consent: Consent,
    val receipt: Receipt? = null,
    val reports: List<Kept> = emptyList(),
    val attempts: Int = 0,
    val due: Long? = null,
    val most: Int? = null,
    val expires: Long = Long.MAX_VALUE,
    val retries: Int = 0,
    val problem: String? = null,
    val uploadBytes: Int = 0,
    val heard: Long? = null,
) {
    val given: Boolean get() = consent.given

    /** The reports that wait for an answer, or for their first upload. */
    val queued: List<Kept>
        get() = if (receipt?.fate in setOf(Fate.WAITING, Fate.ON_ITS_WAY)) reports.filter { it.reply == null } else emptyList()
}

/** Everything that a device must not lose, as one text with a checksum: a device that forgot a receipt would answer again. */
internal data class State(val secret: String = "", val enabled: Boolean = true, val campaigns: Map<String, Entry> = emptyMap()) {
    val receipts: List<Receipt> get() = campaigns.values.mapNotNull { it.receipt }

    operator fun plus(entry: Pair<String, Entry>): State = copy(campaigns = campaigns + entry)
    fun write(): String = Json.write(mapOf("version" to VERSION, "secret" to secret) + plain()).let { checksum(it) + it }

    /** All of it but the secret, for JSON. */
    fun plain(): Map<String, Any?> = mapOf("enabled" to enabled, "campaigns" to campaigns.mapValues { (_, entry) -> entry.plain() })

    companion object {
        /**
         * A new device's state for null. Throws [LdpException] `storage-corrupt`: what is damaged is never taken for empty; and
         * `storage-newer` for what a later version wrote.
         */
        fun read(text: String?): State {
            if (text == null) return State()
            val body = text.drop(CHECKSUM)
            ensure(checksum(body) + body == text, "storage-corrupt")
            val members = refusedAs("storage-corrupt") { strictJson(body) }
            // The first was written without one; a receipt has its window since the second, and its fate's code since the third.
            val version = (members as? Map<*, *>)?.get("version") as? Double ?: 1.0
            ensure(version <= VERSION, "storage-newer")
            return try {
                readObject(members, "") {
                    raw("version")
                    val campaigns = raw("campaigns") as Map<*, *>
                    State(text("secret")!!, switch("enabled")!!, campaigns.entries.associate { (id, entry) -> "$id" to readEntry(entry) })
                }
            } catch (error: RuntimeException) {
                throw LdpException("storage-corrupt", error.message ?: "$error", error)
            }
        }

        private const val VERSION = 3
        private const val CHECKSUM = 43
        private fun checksum(text: String): String = base64url(sha256(text.toByteArray()))
    }
}

private val NUMBERS = Long.MIN_VALUE..Long.MAX_VALUE
private fun Entry.plain(): Map<String, Any?> = mapOf(
    "consent" to consent.run {
        val times = mapOf("granted_at" to grantedAt, "withdrawn_at" to withdrawnAt)
        mapOf("url" to url, "title" to title, "purpose" to purpose, "epsilon" to epsilon) + times
    },
    "receipt" to receipt?.run {
        mapOf(
            "campaign_id" to campaignId,
            "title" to title,
            "study" to study,
            "epsilon" to epsilon,
            "questions" to questions,
            "at" to at,
            "url" to url,
            "fate" to fate.code, "window" to window,
        )
    },
    "reports" to reports.map {
        mapOf("id" to it.id, "question" to it.question, "asked" to it.asked, "payload" to it.payload, "at" to it.at, "reply" to it.reply)
    },
    "attempts" to attempts, "due" to due, "most" to most, "expires" to expires, "retries" to retries, "problem" to problem,
    "upload_bytes" to uploadBytes, "heard" to heard,
)

private fun readEntry(value: Any?): Entry = readObject(value, "campaign") {
    val consent = readObject(raw("consent"), "consent") {
        Consent(
            long("url"),
            long("title"),
            long("purpose"),
            number("epsilon"),
            optionalWhole("granted_at", NUMBERS),
            optionalWhole("withdrawn_at", NUMBERS),
        )
    }
    val receipt = raw("receipt")?.let {
        readObject(it, "receipt") {
            val questions = list("questions", 0..MOST_CELLS).map { question -> (question as Double).toInt() }
            Receipt(
                name("campaign_id"),
                long("title"),
                text("study"),
                number("epsilon"),
                questions,
                whole("at", NUMBERS),
                long("url"),
                Fate.valueOf(name("fate").uppercase().replace('-', '_')),
                text("window") ?: "",
            )
        }
    }
    val reports = list("reports", 0..MOST_CELLS).map { report ->
        readObject(report, "report") {
            raw("heard") // of an earlier version, which kept it here
            val question = whole("question", 0..Int.MAX_VALUE)
            Kept(name("id"), question, long("asked"), long("payload"), optionalWhole("at", NUMBERS), text("reply"))
        }
    }
    Entry(
        consent, receipt, reports, whole("attempts", 0..Int.MAX_VALUE), optionalWhole("due", NUMBERS),
        optionalWhole("most", NUMBERS)?.toInt(), whole("expires", NUMBERS), whole("retries", 0..Int.MAX_VALUE), text("problem"),
        optionalWhole("upload_bytes", 0L..Int.MAX_VALUE)?.toInt() ?: 0, optionalWhole("heard", NUMBERS),
    )
}

/** A text of any length, which this device wrote itself. */
private fun Fields.long(name: String): String = text(name, Int.MAX_VALUE) ?: ""
