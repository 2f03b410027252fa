// Reports and uploads: their ids, and their one encoding in msgpack.
package org.example.ldpbayes

import java.io.ByteArrayOutputStream

internal const val MEDIA_TYPE = "application/vnd.ldp-bayes.reports+msgpack"

/** One perturbed answer: the index of its question, its id of 16 bytes, its payload. [item] must not leave the device. */
internal class Report(val question: Int, val id: ByteArray, val payload: ByteArray, val item: Item? = null)

/** What keyed messages about a group's answer begin with: the campaign's id, and the slot. */
internal fun slot(campaign: Campaign, group: Int): ByteArray =
    campaign.id.toByteArray() + littleEndian(if (campaign.answersAll) group else 0, 4)

internal fun reportId(secret: ByteArray, campaign: Campaign, group: Int): ByteArray = hmac(secret, slot(campaign, group)).copyOf(ID_BYTES)

/** The one encoding of one device's reports, each of which answers a question of its own: all devices' have one length. */
internal fun encodeUpload(reports: List<Report>, campaign: Campaign): ByteArray = packed(reports, campaign.uploadBytes)

/** Bytes of the longest upload that a device of the campaign can have to send, as far as zeros follow. */
internal fun longestUpload(campaign: Campaign): Int {
    val first = ((campaign.windows?.count ?: 1) - 1) * campaign.questions.size
    fun zeros(asked: Question) = Report(first + asked.index, ByteArray(ID_BYTES), ByteArray(asked.mechanism.width))
    return minOf(MOST_PADDED, packed(campaign.pools.map { pool -> pool.map(::zeros).maxBy { packed(listOf(it)).size } }).size)
}

private const val ID_BYTES = 16
private const val MOST_PADDED = 1 shl 19

/** Filled up with zeros to [length]. */
internal fun packed(reports: List<Report>, length: Int = 0): ByteArray = ByteArrayOutputStream().apply {
    write(0x92)
    write(2)
    head(reports.size, 16, 0x90, 0xdb, 1)
    for (report in reports.sortedBy { it.question }) {
        write(0x93)
        head(report.question, 128, 0, 0xcc, 0)
        binary(report.id)
        binary(report.payload)
    }
}.toByteArray().let { it.copyOf(maxOf(it.size, length)) }

/** One byte below a limit, else a code and a big-endian number of the least of 1, 2 or 4 bytes; 2^[power] at least. */
private fun ByteArrayOutputStream.head(value: Int, below: Int, short: Int, code: Int, power: Int) {
    if (value < below) return write(short + value)
    val size = (power..2).first { value.toLong() shr (8 shl it) == 0L }
    write(code + size)
    write(littleEndian(value, 1 shl size).reversedArray())
}

private fun ByteArrayOutputStream.binary(bytes: ByteArray) {
    head(bytes.size, 0, 0, 0xc4, 0)
    write(bytes)
}

internal fun littleEndian(value: Int, width: Int): ByteArray = ByteArray(width) { (value ushr 8 * it).toByte() }
internal fun hex(bytes: ByteArray): String = bytes.joinToString("") { "%02x".format(it) }
internal fun unhex(text: String): ByteArray = text.chunked(2).map { it.toInt(16).toByte() }.toByteArray()
