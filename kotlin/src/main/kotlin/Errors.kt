package org.example.ldpbayes

/**
 * What this library refuses. [code] is stable and is the word that the clients in Python and JavaScript use for it; the message is
 * for people. No message holds a value of anybody's record.
 */
open class LdpException(val code: String, message: String = code, cause: Throwable? = null) : RuntimeException(message, cause)

/** What was asked for cannot be had now: the server's code, or `unreachable`. Later it may. */
class AwayException(code: String) : LdpException(code)

/** A campaign that this device does not answer; nothing was drawn and nothing was spent. */
class RefusedException(val refusal: Refusal) : LdpException(refusal.code)
internal inline fun ensure(right: Boolean, code: String, message: () -> String = { code }) {
    if (!right) throw LdpException(code, message())
}

/** What [wait] gives. An interrupt ends it with [code] and stays set: from Java nobody could catch what no method declares. */
internal inline fun <T> unlessInterrupted(code: String, wait: () -> T): T = try {
    wait()
} catch (error: InterruptedException) {
    Thread.currentThread().interrupt()
    throw AwayException(code)
}
