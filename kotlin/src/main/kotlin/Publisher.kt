package org.example.ldpbayes

import java.security.GeneralSecurityException
import java.security.KeyFactory
import java.security.PublicKey
import java.security.Signature
import java.security.SignatureException
import java.security.spec.X509EncodedKeySpec
import java.time.Instant
import java.util.Base64

private const val PREFIX = "ldp-bayes directory 1\n" // of what is signed
private const val LARGEST_DIRECTORY = 1 shl 16
private const val MOST_CAMPAIGNS = 256
private const val SIGNATURE_BYTES = 64
private val KEY = Regex("[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]") // 32 bytes, in their one encoding
private val KEY_HEAD = unhex("302a300506032b6570032100") // of an Ed25519 key in its X.509 encoding (RFC 8410)

/**
 * Who has to have signed a campaign and its model: the holder of one of these public [keys] (43 characters each). An app may pin the
 * next key beside the one in use. Throws [LdpException] `bad-publisher`.
 */
class Publisher(vararg keys: String) {
    internal val keys: List<String> = keys.toList()

    init {
        ensure(keys.isNotEmpty() && keys.all(KEY::matches), "bad-publisher")
    }
}

/** What a publisher signs: which campaigns are open, with the SHA-256 (hexadecimal) of each one's model where there is one yet. */
internal class Directory(
    val text: String,
    val statement: String,
    val version: Long,
    val expires: Instant,
    val campaigns: Map<String, String?>,
) {
    /** It holds a day longer than it says, for clocks that are slow. */
    fun holds(now: Long): Boolean = expires.toEpochMilli() > now - CLOCK_TOLERANCE.inWholeMilliseconds

    companion object {
        /**
         * The statement of a document that the holder of [key] signed; what it holds is not looked at before the signature is. Throws
         * [LdpException] `malformed-directory`, `wrong-signature` or `no-signatures`.
         */
        fun read(document: ByteArray, key: String): Directory {
            ensure(document.size <= LARGEST_DIRECTORY, MALFORMED)
            val text = refusedAs(MALFORMED) { utf8(document) }
            val (statement, signature) = refusedAs(MALFORMED) {
                readObject(strictJson(text), "") { Pair(raw("statement") as? String, raw("signature") as? String) }
            }
            ensure(statement != null && signature != null, MALFORMED)
            ensure(Charsets.UTF_8.newEncoder().canEncode(statement), MALFORMED)
            ensure(isSigned(key, (PREFIX + statement).toByteArray(), signature!!), "wrong-signature")
            return refusedAs(MALFORMED) {
                readObject(strictJson(statement!!), "") {
                    val expires = instant("expires") ?: refuse("expires", "is missing")
                    val campaigns = list("campaigns", 0..MOST_CAMPAIGNS).mapIndexed { at, one ->
                        readObject(one, place("campaigns[$at]")) { name("id") to optionalName("model") }
                    }
                    Directory(text, statement, whole("version", 1L until (1L shl 53)), expires, campaigns.toMap())
                }
            }
        }

        private const val MALFORMED = "malformed-directory"
        private fun isSigned(key: String, message: ByteArray, text: String): Boolean {
            val public = publicKey(key)
            val signature = try {
                Base64.getUrlDecoder().decode(text)
            } catch (error: IllegalArgumentException) {
                return false
            }
            if (signature.size != SIGNATURE_BYTES || base64url(signature) != text) return false
            return try {
                Signature.getInstance("Ed25519").run {
                    initVerify(public)
                    update(message)
                    verify(signature)
                }
            } catch (error: SignatureException) {
                false
            }
        }

        private fun publicKey(key: String): PublicKey = try {
            KeyFactory.getInstance("Ed25519").generatePublic(X509EncodedKeySpec(KEY_HEAD + Base64.getUrlDecoder().decode(key)))
        } catch (error: GeneralSecurityException) {
            throw LdpException("no-signatures", "this platform has no Ed25519, and what cannot be checked is not believed", error)
        }
    }
}

/** A campaign that has to be signed, as a device sees it. */
internal class Signed(publisher: Publisher, private val install: Install, private val url: String, private val id: String) {
    private val sources = publisher.keys.map(::Source)

    /** What a model is stored under: one that was stored unsigned is not one that was signed. */
    val digest: String = base64url(sha256(publisher.keys.joinToString("+").toByteArray())).take(16)

    /** Has a directory that holds now and names the campaign, or the newest there is. */
    fun refresh(until: Deadline) {
        if (entries().isNullOrEmpty()) renew(until)
    }

    /** Why the campaign is not one of the publisher's; nothing is fetched. */
    fun refusal(): Refusal? = entries().let {
        if (it == null) {
            Refusal.DIRECTORY_EXPIRED
        } else if (it.isEmpty()) {
            Refusal.NOT_IN_DIRECTORY
        } else {
            null
        }
    }

    /** Throws [LdpException] `invalid-model` for a model that is not the campaign's, and what [refresh] throws. */
    fun checkModel(model: ByteArray, until: Deadline) {
        val digest = hex(sha256(model))
        if (digest in entries().orEmpty()) return
        renew(until)
        ensure(digest in entries().orEmpty(), "invalid-model") { "the publisher has not signed this model" }
    }

    /** Keeps what was seen: an older directory is refused from then on. */
    fun keep() = sources.forEach { it.keep() }

    /** The models that the directories that hold name for the campaign, null for one that has none; null where none holds. */
    private fun entries(): List<String?>? {
        val standing = sources.mapNotNull { it.standing() }.ifEmpty { return null }
        return standing.filter { id in it.campaigns }.map { it.campaigns[id] }
    }

    /** The directory of each key anew. Throws what went wrong with the first, where none was had. */
    private fun renew(until: Deadline) {
        val failures = sources.mapNotNull { source -> runCatching { source.renew(until) }.exceptionOrNull() }
        if (failures.size == sources.size) throw failures[0]
    }

    /** The directory of one key. */
    private inner class Source(private val key: String) {
        private val place = "publisher-$key"
        private var seen: Directory? = null
        fun standing(): Directory? = newest()?.takeIf { it.holds(install.now()) }
        fun renew(until: Deadline) {
            val directory = Directory.read(install.network.get("$url/v1/directories/$key", LARGEST_DIRECTORY, until), key)
            val known = newest()
            ensure(known == null || directory.version > known.version || directory.statement == known.statement, "older-directory")
            seen = directory
            if (install.exists()) keep()
            ensure(directory.holds(install.now()), "directory-expired")
        }

        fun keep() {
            val directory = seen ?: return
            install.storage.change(place) { before ->
                val kept = before?.let { Directory.read(it.toByteArray(), key) }
                if (kept != null && kept.version > directory.version) before else directory.text
            }
        }

        private fun newest(): Directory? {
            val kept = install.storage.read(place)?.let { Directory.read(it.toByteArray(), key) }
            return listOfNotNull(seen, kept).maxByOrNull { it.version }
        }
    }
}
