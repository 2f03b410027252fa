// For an app's own tests: a storage in memory, and an aggregator in memory that can be made to fail.
package org.example.ldpbayes.testing

import org.example.ldpbayes.Storage

/** A storage that lives as long as it is held. */
class MemoryStorage : Storage {
    private val texts = HashMap<String, String>()

    override fun read(name: String): String? = synchronized(texts) { texts[name] }

    override fun change(name: String, change: (String?) -> String?) = synchronized(texts) {
        change(texts[name]).let { if (it == null) texts -= name else texts[name] = it }
    }

    override fun clear() = synchronized(texts) { texts.clear() }

    override fun <T> exclusive(wait: Long, work: () -> T): T? = synchronized(this) { work() }
}
