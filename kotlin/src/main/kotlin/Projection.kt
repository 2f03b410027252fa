package org.example.ldpbayes

private val CAMPAIGN_ID = Regex("[A-Za-z0-9_-]{43}")
internal fun isCampaignId(text: String): Boolean = CAMPAIGN_ID.matches(text)

/** A linear function of [inputs], applied on the device: the outputs are then numbers with public bounds of their own. */
internal data class Projection(
    val inputs: List<Numeric>,
    val mean: List<Double>,
    val scale: List<Double>,
    val matrix: List<List<Double>>,
    val outputs: List<Numeric>,
) {
    /** Output number [row] of the inputs' values, which are clipped first: a sum from left to right. */
    private fun output(row: Int, values: List<Double>): Double =
        values.indices.fold(0.0) { total, i -> total + matrix[row][i] * ((inputs[i].clip(values[i]) - mean[i]) / scale[i]) }

    internal companion object {
        /** The record's own value, or a projection's output; null without any input. A missing input is [absent]'s. */
        fun valueOf(record: Map<String, Any?>, name: String, projection: Projection?, absent: (Projection, Int) -> Double): Any? {
            val row = projection?.outputs?.indexOfFirst { it.name == name } ?: -1
            if (row < 0) return held(record, name)
            val numbers = projection!!.inputs.map { numberOf(held(record, it.name)) }
            if (numbers.all { it == null }) return null
            return projection.output(row, numbers.mapIndexed { i, number -> number ?: absent(projection, i) })
        }
    }
}

/** The projection of a document, whose names are all different from [label] and those of [features]. */
internal fun Fields.readProjection(features: List<Feature>, label: Label, inStudy: Boolean): Projection {
    choice("method", listOf("pca", "dca"))
    val inputs = texts("inputs", 1..MOST_FEATURES).map { name ->
        features.find { it.name == name }?.number ?: refuse("inputs", "must name features that are numbers")
    }
    val mean = row("mean", inputs.size)
    val scale = row("scale", inputs.size)
    require(scale.all { it > 0 }, "scale", "must be above 0")
    val others = listOf(label.name) + features.map { it.name }
    val outputs = readFeatures("outputs", 1..inputs.size, label.classes.size, others).map {
        it.number ?: refuse("outputs", "must be numbers")
    }
    val matrix = list("matrix", outputs.size..outputs.size).map { row("matrix", it, inputs.size) }
    for (row in matrix) {
        require(row.any { it != 0.0 }, "matrix", "must have no row of zeros")
        val reach = inputs.indices.sumOf { i ->
            Math.abs(row[i]) * (Math.max(Math.abs(inputs[i].low - mean[i]), Math.abs(inputs[i].high - mean[i])) / scale[i])
        }
        require(reach.isFinite(), "matrix", "must keep every output a double")
    }
    val origin = text("fitted_on") ?: refuse("fitted_on", "is missing")
    if (origin == "public") {
        absent("fitted_study")
        absent("fitted_epsilon")
    } else {
        require(isCampaignId(origin) && inStudy, "fitted_on", "must be public, or a campaign's id in a study")
        name("fitted_study")
        positive("fitted_epsilon")
    }
    return Projection(inputs, mean, scale, matrix, outputs)
}
