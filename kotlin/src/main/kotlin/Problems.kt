// What is wrong with a record, told to the developer on the device and to nobody else: it shows values of the record.
package org.example.ldpbayes

/** One thing that is wrong: the [feature]'s name in the record, what is wrong there, and what would be right. */
data class Problem(val feature: String, val wrong: String, val right: String)
private const val MOST_NAMED = 12
private const val LONGEST_SHOWN = 60

/**
 * Whatever in [record] would not be answered as it was meant, of all features at once; then names that the campaign does not know, and
 * a [label] that it has not declared. A number beyond its bounds is none: it is clipped.
 */
internal fun problems(campaign: Campaign, record: Map<String, Any?>, label: Any?): List<Problem> {
    val known = campaign.features.map { it.name }
    val unusable = campaign.features.mapNotNull { feature ->
        wrongWith(feature, held(record, feature.name))?.let { Problem(feature.name, it, feature.wanted()) }
    }
    val unknown = (record.keys - known.toSet()).map { Problem(it, "is no feature of the campaign", "one of ${listed(known)}") }
    val declared = label == null || campaign.label.indexOf(label) != null
    val (name, classes) = campaign.label
    val right = if (name.isEmpty()) "no label" else "one of ${listed(classes)}"
    return unusable + unknown + listOfNotNull(Problem(name, "${shown(label)} is not declared", right).takeIf { !declared })
}

private fun wrongWith(feature: Feature, value: Any?): String? {
    val nothing = value == null || (value is Double && value.isNaN()) || (value is Float && value.isNaN())
    return if (nothing) {
        "it holds no value".takeUnless { feature.missing || feature.indexOf(null) != null }
    } else {
        feature.wrong(value)?.let { "${shown(value)} $it" }
    }
}

internal fun listed(texts: List<String>): String = texts.joinToString(limit = MOST_NAMED)
private fun shown(value: Any?): String = (if (value is String) "\"$value\"" else "$value").take(LONGEST_SHOWN)
