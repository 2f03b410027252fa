/// A linear function of `inputs`, applied on the device: the outputs are then numbers with public bounds of their own.
struct Projection {
    let inputs: [Feature], mean: [Double], scale: [Double], matrix: [[Double]], outputs: [Feature]
    /// Those of the inputs.
    let numbers: [Numbers]
    /// Output number `row` of the inputs' values, which are clipped first: a sum from left to right.
    private func output(_ row: Int, _ values: [Double]) -> Double {
        values.indices.reduce(0) { $0 + matrix[row][$1] * ((numbers[$1].clipped(values[$1]) - mean[$1]) / scale[$1]) }
    }
    /// The record's own value of a feature, or a projection's output; nothing without any input. A missing input is `absent`'s.
    static func value(_ record: Record, _ name: String, _ by: Projection?, absent: (Projection, Int) throws -> Double) rethrows -> Meaning {
        let row = by?.outputs.firstIndex { ExactText($0.name) == ExactText(name) }
        guard let projection = by, let row else { return record[name] }
        let numbers = projection.inputs.map { record[$0.name].number }
        if numbers.allSatisfy({ $0 == nil }) { return .nothing }
        let values = try numbers.enumerated().map { try $1 ?? absent(projection, $0) }
        return .number(projection.output(row, values))
    }
}

func isCampaignId(_ text: String) -> Bool { text.utf8.count == 43 && text.utf8.allSatisfy(isBase64url) }
private enum Method: String, CaseIterable { case pca, dca }

extension Fields {
    /// The projection of a document, whose names are all different from the label's and those of `features`.
    func projection(_ features: [Feature], _ label: Label, inStudy: Bool) throws -> Projection {
        _ = try choice("method") as Method
        let inputs = try texts("inputs", 1...mostFeatures).map { name in
            let named = features.first { $0.numbers != nil && ExactText($0.name) == ExactText(name) }
            return try named ?? raise(refusal("inputs", "must name features that are numbers"))
        }
        let (mean, scale) = (try row("mean", inputs.count), try row("scale", inputs.count))
        try require(scale.allSatisfy { $0 > 0 }, "scale", "must be above 0")
        let outputs = try self.features(
            "outputs", 1...inputs.count, classes: label.classes.count, others: [label.name] + features.map(\.name))
        try require(outputs.allSatisfy { $0.numbers != nil }, "outputs", "must be numbers")
        let numbers = inputs.compactMap(\.numbers)
        let matrix = try list("matrix", outputs.count...outputs.count).map { try row("matrix", $0, inputs.count) }
        for row in matrix {
            try require(row.contains { $0 != 0 }, "matrix", "must have no row of zeros")
            let reach = inputs.indices.reduce(0.0) {
                let (low, high) = (numbers[$1].low, numbers[$1].high)
                return $0 + abs(row[$1]) * (max(abs(low - mean[$1]), abs(high - mean[$1])) / scale[$1])
            }
            try require(reach.isFinite, "matrix", "must keep every output a double")
        }
        let origin = try present(text("fitted_on"), "fitted_on")
        if origin == "public" {
            for name in ["fitted_study", "fitted_epsilon"] { try absent(name) }
        } else {
            try require(isCampaignId(origin) && inStudy, "fitted_on", "must be public, or a campaign's id in a study")
            _ = (try name("fitted_study"), try positive("fitted_epsilon"))
        }
        return Projection(inputs: inputs, mean: mean, scale: scale, matrix: matrix, outputs: outputs, numbers: numbers)
    }
}
