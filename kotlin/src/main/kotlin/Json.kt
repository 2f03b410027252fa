package org.example.ldpbayes

/** JSON as RFC 8259 has it: no key twice in one object, no number beyond a double. Numbers are doubles, objects keep their order. */
internal object Json {
    /** Throws [IllegalArgumentException]. */
    fun parse(text: String): Any? = Reader(text).document()
    fun write(value: Any?): String = StringBuilder().also { it.put(value) }.toString()
    private fun StringBuilder.put(value: Any?) {
        when (value) {
            is String -> quoted(value)

            is Map<*, *> -> joined('{', value.entries, '}') { (name, member) ->
                quoted("$name")
                append(':')
                put(member)
            }

            is Iterable<*> -> joined('[', value, ']') { put(it) }

            else -> append(value)
        }
    }

    private fun <T> StringBuilder.joined(open: Char, members: Iterable<T>, close: Char, put: (T) -> Unit) {
        append(open)
        members.forEachIndexed { place, member ->
            if (place > 0) append(',')
            put(member)
        }
        append(close)
    }

    private fun StringBuilder.quoted(text: String) {
        append('"')
        for (sign in text) if (sign < ' ' || sign in "\"\\") append("\\u%04x".format(sign.code)) else append(sign)
        append('"')
    }

    private class Reader(private val text: String) {
        private var at = 0
        fun document(): Any? = value(DEEPEST).also { require(sign() == null) }

        /** The next sign that is no blank, null at the end. */
        private fun sign(): Char? {
            while (at < text.length && text[at] in " \t\n\r") at++
            return text.getOrNull(at)
        }

        private fun value(depth: Int): Any? {
            require(depth > 0)
            return when (sign()) {
                '{' -> LinkedHashMap<String, Any?>().apply {
                    listed('}') {
                        require(sign() == '"')
                        val name = string()
                        require(sign() == ':' && name !in this)
                        at++
                        this[name] = value(depth - 1)
                    }
                }

                '[' -> ArrayList<Any?>().apply { listed(']') { add(value(depth - 1)) } }

                '"' -> string()

                't' -> word("true", true)

                'f' -> word("false", false)

                'n' -> word("null", null)

                else -> number()
            }
        }

        private inline fun listed(close: Char, member: () -> Unit) {
            at++
            if (sign() != close) {
                member()
                while (sign() == ',') {
                    at++
                    member()
                }
            }
            require(sign() == close)
            at++
        }

        private fun word(word: String, value: Any?): Any? = value.also {
            require(text.startsWith(word, at))
            at += word.length
        }

        private fun number(): Double {
            val end = NUMBER.matcher(text).region(at, text.length).run { if (lookingAt()) end() else at }
            require(end > at)
            // + 0.0: a minus zero is zero.
            return (text.substring(at, end).toDouble() + 0.0).also {
                at = end
                require(it.isFinite())
            }
        }

        private fun string(): String = buildString {
            while (true) {
                val sign = text.getOrNull(++at)
                when {
                    sign == '"' -> break
                    sign == '\\' -> append(escaped())
                    sign != null && sign >= ' ' -> append(sign)
                    else -> throw IllegalArgumentException()
                }
            }
            at++
        }

        private fun escaped(): Char = when (val sign = text.getOrNull(++at)) {
            '"', '\\', '/' -> sign

            'b', 'f', 'n', 'r', 't' -> "\b\u000c\n\r\t"["bfnrt".indexOf(sign)]

            'u' -> {
                val digits = text.substring(minOf(at + 1, text.length), minOf(at + 5, text.length))
                require(digits.length == 4 && digits.all { it in '0'..'9' || it in 'a'..'f' || it in 'A'..'F' })
                at += 4
                digits.toInt(16).toChar()
            }

            else -> throw IllegalArgumentException()
        }
    }

    private const val DEEPEST = 500
    private val NUMBER = java.util.regex.Pattern.compile("-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][-+]?[0-9]+)?")
}
