package org.example.ldpbayes

import java.text.Normalizer
import java.time.DateTimeException
import java.time.Instant

internal const val LONGEST_TEXT = 200

/** Reads one JSON object key by key; a key that nobody asked for is refused. */
internal inline fun <T> readObject(value: Any?, place: String, read: Fields.() -> T): T =
    Fields(value, place).run { read().also { finish() } }

/** Runs [read], whose refusals have another [code] where a document of another kind is read. */
internal inline fun <T> refusedAs(code: String, read: () -> T): T = try {
    read()
} catch (error: LdpException) {
    throw LdpException(code, error.message ?: code)
}

/** The JSON of a text. Throws [LdpException] `invalid-document`. */
internal fun strictJson(text: String): Any? = try {
    Json.parse(text)
} catch (error: IllegalArgumentException) {
    throw LdpException(INVALID_DOCUMENT, "document: is not JSON, or holds a key twice, or a number beyond a double")
}

internal const val INVALID_DOCUMENT = "invalid-document"

/** One JSON object; every refusal names its place. An absent key and null are one. */
internal class Fields(value: Any?, private val path: String) {
    private val members = value as? Map<*, *> ?: throw LdpException(INVALID_DOCUMENT, "${path.ifEmpty { "document" }}: must be an object")
    private val asked = HashSet<Any?>()
    fun refuse(name: String, right: String): Nothing = throw LdpException(INVALID_DOCUMENT, "${place(name)}: $right")
    fun require(right: Boolean, name: String, wanted: String) {
        if (!right) refuse(name, wanted)
    }

    fun place(name: String): String = if (path.isEmpty()) name else "$path.$name"
    fun raw(name: String): Any? = members[name].also { asked += name }
    fun finish() = members.keys.forEach { if (it !in asked) refuse("$it", "is an unknown key") }
    fun absent(name: String) = require(raw(name) == null, name, "must be absent here")
    fun text(name: String, longest: Int = LONGEST_TEXT): String? = raw(name)?.let { checkText(it, name, longest) }
    fun name(name: String): String = optionalName(name) ?: refuse(name, "is missing")
    fun optionalName(name: String): String? = text(name)?.also { require(it.isNotBlank(), name, "must be a non-empty text") }

    fun choice(name: String, choices: Collection<String>, otherwise: String? = null): String {
        val value = raw(name) ?: otherwise
        return choices.find { it == value } ?: refuse(name, "must be one of ${choices.joinToString()}")
    }

    fun switch(name: String): Boolean? = raw(name)?.let { it as? Boolean ?: refuse(name, "must be true or false") }

    fun optionalNumber(name: String): Double? = raw(name)?.let { it as? Double ?: refuse(name, "must be a number") }
    fun number(name: String): Double = optionalNumber(name) ?: refuse(name, "is missing")
    fun positive(name: String): Double = number(name).also { require(it > 0, name, "must be above 0") }

    /** A JSON number's integer: 1, 1.0 and 1e0 are one number. */
    fun optionalWhole(name: String, range: LongRange): Long? = optionalNumber(name)?.let {
        it.toLong().takeIf { whole -> whole.toDouble() == it && whole in range } ?: refuse(name, "must be an integer in $range")
    }

    fun whole(name: String, range: LongRange): Long = optionalWhole(name, range) ?: refuse(name, "is missing")
    fun whole(name: String, range: IntRange): Int = whole(name, range.first.toLong()..range.last).toInt()
    fun optionalList(name: String, sizes: IntRange): List<Any?>? = raw(name)?.let {
        (it as? List<*>)?.takeIf { list -> list.size in sizes } ?: refuse(name, "must be a list of $sizes entries")
    }

    fun list(name: String, sizes: IntRange): List<Any?> = optionalList(name, sizes) ?: refuse(name, "is missing")

    /** A list of exactly [size] numbers. */
    fun row(name: String, size: Int): List<Double> = row(name, raw(name), size)
    fun row(name: String, value: Any?, size: Int): List<Double> =
        (value as? List<*>)?.map { it as? Double ?: refuse(name, "must hold numbers") }?.takeIf { it.size == size }
            ?: refuse(name, "must be a list of $size numbers")

    /** A list of different, non-empty texts. */
    fun texts(name: String, sizes: IntRange): List<String> {
        val texts = list(name, sizes).map { checkText(it, name) }
        require(texts.all { it.isNotEmpty() } && texts.toSet().size == texts.size, name, "must be different non-empty texts")
        return texts
    }

    /** Texts that stay different when accents are written in one way. */
    fun declared(name: String, most: Int): List<String> = texts(name, 2..most).also {
        require(it.map(::composed).toSet().size == it.size, name, "holds two texts that are one in Unicode's form NFC")
    }

    /** A time in UTC that exists, such as 2027-01-01T00:00:00Z. */
    fun instant(name: String): Instant? = text(name)?.let {
        try {
            if (INSTANT.matches(it)) Instant.parse(it) else null
        } catch (error: DateTimeException) {
            null
        } ?: refuse(name, "must be a time such as 2027-01-01T00:00:00Z")
    }

    private fun checkText(value: Any?, name: String, longest: Int = LONGEST_TEXT): String {
        val text = value as? String ?: refuse(name, "must be a text")
        require(text.codePointCount(0, text.length) <= longest, name, "must have at most $longest characters")
        require(text.codePoints().noneMatch(::isNoText), name, "holds what people cannot be shown")
        return text
    }

    private companion object {
        val INSTANT = Regex("(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z")

        /** Control characters, ends of lines, marks of writing direction, and halves of a surrogate pair. */
        fun isNoText(sign: Int): Boolean = sign < 0x20 || sign in 0x7f..0x9f || sign == 0x61c || sign in 0x200e..0x200f ||
            sign in 0x2028..0x202e || sign in 0x2066..0x2069 || sign in 0xd800..0xdfff
    }
}

/** A text in Unicode's form NFC: an accent may be a character of its own, or one with the letter below it. */
internal fun composed(text: String): String = Normalizer.normalize(text, Normalizer.Form.NFC)
