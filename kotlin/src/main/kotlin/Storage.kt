package org.example.ldpbayes

import java.io.File
import java.io.IOException
import java.nio.channels.FileChannel
import java.nio.channels.OverlappingFileLockException
import java.nio.file.AccessDeniedException
import java.nio.file.FileSystemException
import java.nio.file.Files
import java.nio.file.NoSuchFileException
import java.nio.file.Path
import java.nio.file.StandardCopyOption.ATOMIC_MOVE
import java.nio.file.StandardCopyOption.REPLACE_EXISTING
import java.nio.file.StandardOpenOption.CREATE
import java.nio.file.StandardOpenOption.READ
import java.nio.file.StandardOpenOption.TRUNCATE_EXISTING
import java.nio.file.StandardOpenOption.WRITE
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.TimeUnit
import java.util.concurrent.locks.ReentrantLock

/**
 * What a device needs of a storage: texts by name. Whatever fails throws [LdpException], and nothing is changed then. An app may
 * bring its own.
 *
 * A device keeps one text with everything that it must not lose (secret, ledger, consents, drawn answers, queue), so that one atomic
 * change debits the ledger and queues the report.
 */
interface Storage {
    /** The text of a name, null where there is none. Creates nothing. */
    fun read(name: String): String?

    /**
     * Replaces the text of a name by what [change] makes of it (null: deletes it), at once and all or nothing, one caller after the
     * other among all threads and processes. When it returns, the text is on disk. Where [change] throws, nothing is changed.
     */
    fun change(name: String, change: (String?) -> String?)

    /** Throws where nothing could be kept now, as far as that can be told: nobody is then asked. Leaves nothing behind. */
    fun check() = Unit

    /** Deletes every text. */
    fun clear()

    /** Does [work] while no other thread or process does its own; null where that does not come about within [wait] milliseconds. */
    fun <T> exclusive(wait: Long, work: () -> T): T?
}

/**
 * A folder with a file for each text: written beside it, synced, renamed over it, and the folder synced. Safe with any number of
 * threads and processes; the system unlocks what a killed process has held. On Android it belongs into `Context.noBackupFilesDir`:
 * a device that comes back from a backup does not know what it has answered since.
 */
class FileStorage(folder: File) : Storage {
    private val folder: Path = folder.toPath().toAbsolutePath().normalize()
    override fun read(name: String): String? = guarded {
        try {
            String(Files.readAllBytes(file(name)), Charsets.UTF_8)
        } catch (error: NoSuchFileException) {
            null
        }
    }

    override fun change(name: String, change: (String?) -> String?) = locked {
        val before = read(name)
        val after = change(before)
        if (after != before) guarded { put(name, after) }
    }

    override fun clear() {
        if (Files.exists(folder)) {
            locked {
                guarded {
                    Files.newDirectoryStream(folder).use { files -> files.filter { "${it.fileName}" !in LOCKS }.forEach(Files::delete) }
                    sync(folder)
                }
            }
        }
    }

    override fun <T> exclusive(wait: Long, work: () -> T): T? = lock(SENDING, wait) { work() }
    private fun locked(work: () -> Unit) = lock(CHANGING, STORAGE_WAIT, work) ?: throw LdpException("storage-busy")
    private fun file(name: String): Path = folder.resolve(name)
    private fun put(name: String, text: String?) {
        val draft = file("draft")
        if (text == null) {
            Files.deleteIfExists(file(name))
        } else {
            FileChannel.open(draft, CREATE, WRITE, TRUNCATE_EXISTING).use { channel ->
                val bytes = java.nio.ByteBuffer.wrap(text.toByteArray())
                while (bytes.hasRemaining()) channel.write(bytes)
                channel.force(true)
            }
            Files.move(draft, file(name), ATOMIC_MOVE, REPLACE_EXISTING)
        }
        sync(folder)
    }

    /** Makes what happened in a folder outlast a loss of power. */
    private fun sync(folder: Path) = FileChannel.open(folder, READ).use { it.force(true) }
    private fun makeFolder() {
        if (Files.isDirectory(folder)) return
        val present = generateSequence(folder.parent) { it.parent }.first(Files::exists)
        Files.createDirectories(folder)
        folder.toFile().run {
            setReadable(false, false)
            setReadable(true)
            setExecutable(false, false)
            setExecutable(true)
        }
        generateSequence(folder.parent) { it.parent }.takeWhile { it.startsWith(present) }.forEach(::sync)
    }

    private fun <T> lock(name: String, wait: Long, work: () -> T): T? {
        val until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(wait)
        guarded(::makeFolder)
        val mine = THREADS.computeIfAbsent(file(name)) { ReentrantLock() }
        if (!unlessInterrupted("storage-busy") { mine.tryLock(wait, TimeUnit.MILLISECONDS) }) return null
        try {
            return guarded { FileChannel.open(file(name), CREATE, WRITE) }.use { channel ->
                while (true) {
                    if (guarded { tryLock(channel) }) return work()
                    if (System.nanoTime() >= until) return null
                    unlessInterrupted("storage-busy") { Thread.sleep(POLL_MILLISECONDS) }
                }
                @Suppress("UNREACHABLE_CODE")
                null
            }
        } finally {
            mine.unlock()
        }
    }

    private fun tryLock(channel: FileChannel): Boolean = try {
        channel.tryLock() != null
    } catch (error: OverlappingFileLockException) {
        false // of another class loader
    }

    /** Writes, and deletes, where the folder is or would be made. */
    override fun check(): Unit = guarded {
        val tried = Files.createTempFile(generateSequence(folder) { it.parent }.first(Files::exists), "draft", null)
        try {
            Files.write(tried, ByteArray(ROOM_BYTES))
        } finally {
            Files.delete(tried)
        }
    }

    private inline fun <T> guarded(work: () -> T): T = try {
        work()
    } catch (error: IOException) {
        val words = (error as? FileSystemException)?.reason ?: error.message ?: "$error"
        throw LdpException(if (error is AccessDeniedException) READ_ONLY else problemOf(words), words, error)
    }

    /** The system's own words are all that the platform gives. */
    private fun problemOf(words: String): String = when {
        FULL.containsMatchIn(words) -> "storage-full"
        "ead-only file system" in words -> READ_ONLY
        else -> "storage-unavailable"
    }

    private companion object {
        const val CHANGING = "changing.lock"
        const val SENDING = "sending.lock"
        const val ROOM_BYTES = 1 shl 16
        const val READ_ONLY = "storage-read-only"
        val FULL = Regex("No space left|quota exceeded|File too large", RegexOption.IGNORE_CASE)
        const val POLL_MILLISECONDS = 5L
        val LOCKS = setOf(CHANGING, SENDING)
        const val STORAGE_WAIT = 10_000L

        /** A file's lock is one of processes; threads take turns here. */
        val THREADS = ConcurrentHashMap<Path, ReentrantLock>()
    }
}
