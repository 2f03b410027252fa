import Foundation

private let (largestVariance, mostEdges) = (1e300, 7)

/// P(value | class) of one feature.
struct Likelihood {
    enum Form {
        case table([[Double]])
        case gaussian(Numbers, mean: [Double], variance: [Double])
    }
    let feature: Feature, form: Form
    /// ln P(value | class) by class, nil for a value that takes no part.
    func logarithms(_ value: Meaning) -> [Double]? {
        switch form {
        case .table(let shares): return feature.index(of: value).map { shares[$0].map { log($0) } }
        case .gaussian(let numbers, let mean, let variance):
            return value.number.map(numbers.clipped).map { x in
                mean.indices.map { c in (log(2 * Double.pi * variance[c]) + (x - mean[c]) * (x - mean[c]) / variance[c]) / -2 }
            }
        }
    }
}

struct Model {
    let label: Label, prior: [Double], likelihoods: [Likelihood], projection: Projection?
    func scores(_ record: Record) -> [Double] {
        let logPrior = prior.map { log($0) }
        var sums = logPrior
        for likelihood in likelihoods {
            let value = Projection.value(record, likelihood.feature.name, projection) { $0.mean[$1] }
            if let logarithms = likelihood.logarithms(value) { sums = zip(sums, logarithms).map(+) }
        }
        return sums.contains { $0 > -.infinity } ? sums : logPrior
    }
}

/// The index of the largest score; of equals the first.
func best(_ scores: [Double]) -> Int { scores.indices.reduce(0) { scores[$1] > scores[$0] ? $1 : $0 } }

/// Classifies records on the device with a published model. A feature without a usable value does not take part.
public struct Classifier: Sendable {
    let model: Model
    /// The classes, in the order of the label.
    public var classes: [String] { model.label.classes }
    /// The classifier of a model document, whose label is this one where it is known. Throws ``LdpError`` `invalid-model`.
    public init(model document: Data, of label: Label? = nil) throws {
        model = try refused(as: "invalid-model") { try Fields.read(Json(document), "") { try Model($0, label, declared: nil) } }
    }
    /// ln P(class) + sum of ln P(value | class) over the features, per class; ln P(class) where every class is impossible.
    public func scores(_ record: Record) -> [Double] { model.scores(record) }
    /// The most probable class; of equals the first declared. Where every class is impossible, by the prior.
    public func predict(_ record: Record) -> String { classes[best(scores(record))] }
    /// P(class | record), in the order of ``classes``. Where every class is impossible, the prior.
    public func predictProba(_ record: Record) -> [Double] {
        let scores = scores(record)
        let shares = scores.map { exp($0 - scores.max()!) }
        return shares.map { $0 / shares.reduce(0, +) }
    }
}

/// What an evaluation round asks about: a model, and where there are two classes the bins of its log odds.
struct Evaluation {
    let model: Model, edges: [Double]?
    var places: Int { edges.map { $0.count + 1 } ?? model.prior.count }
    /// The places in words: bins of the log odds, or what the model says.
    var names: [String] {
        guard let ends = edges?.map(general) else { return model.label.classes.map { "the model says \($0)" } }
        let inner = zip(ends, ends.dropFirst()).map { "(\($0), \($1)]" }
        return (["up to \(ends.first!)"] + inner + ["above \(ends.last!)"]).map { "log odds \($0)" }
    }
    /// The number of edges that the log odds lie above; with more classes than two the class that the model says.
    func place(of scores: [Double]) -> Int { edges?.filter { scores[1] - scores[0] > $0 }.count ?? best(scores) }
    init(_ fields: Fields, _ label: Label, _ features: [Feature]) throws {
        model = try Fields.read(fields.raw("model"), "evaluation.model") { try Model($0, label, declared: features) }
        let classes = label.classes.count
        if classes > 2 { try fields.absent("edges") }
        edges = try classes > 2 ? nil : fields.row("edges", fields.list("edges", 1...mostEdges).count)
        let isRising = edges.map { $0.contains(0) && zip($0, $0.dropFirst()).allSatisfy(<) } ?? true
        try fields.require(isRising, "edges", "must rise, and hold 0")
        try fields.require(classes * classes <= mostCells, "model", "has too many classes")
        if let weights = fields.raw("weights") {
            let row = try fields.row("weights", weights, 2)
            let isRight = row.allSatisfy { Int(exactly: $0).map { 0...mostWeight ~= $0 } ?? false } && row.contains { $0 > 0 }
            try fields.require(isRight, "weights", "must be two integers, not both 0")
        }
    }
}

private enum ModelKind: String, CaseIterable { case naiveBayes = "naive-bayes" }
/// The kind of a model's feature that is asked as moments.
private let gaussian = "gaussian"

extension Model {
    /// A model: of the campaign's `label`, where that is known, and about nothing but the `declared` features, where they are.
    init(_ fields: Fields, _ label: Label?, declared: [Feature]?) throws {
        _ = try fields.whole("version", 1...1)
        _ = try fields.choice("kind") as ModelKind
        let own = Label(name: try fields.name("label"), classes: try fields.texts("classes", 2...mostClasses))
        try fields.require(label?.isLike(own) ?? true, "label", "is not the campaign's")
        let classes = own.classes.count
        let prior = try fields.row("prior", classes)
        try fields.requireShares("prior", prior)
        let likelihoods = try fields.list("features", 0...mostFeatures).enumerated().map { at, value in
            try Fields.read(value, fields.place("features[\(at)]")) { try $0.likelihood(classes) }
        }
        try fields.require(areDifferent([own.name] + likelihoods.map(\.feature.name)), "features", "must have different names")
        switch fields.raw("training") {
        case nil, .object, .truth(false), .number(0), .list([]), .text(ExactText("")): break
        default: throw fields.refusal("training", "must be an object")
        }
        let projection = try fields.raw("projection").map { value in
            try Fields.read(value, fields.place("projection")) {
                try $0.projection($0.features("features", 1...mostFeatures, classes: classes, others: [own.name]), own, inStudy: true)
            }
        }
        let outputs = (projection?.outputs ?? []).map(\.name).exact
        let used = likelihoods.map(\.feature).filter { !outputs.contains(ExactText($0.name)) } + (projection?.inputs ?? [])
        let isKnown = declared.map { declared in used.allSatisfy { one in declared.contains { $0.isLike(one) } } } ?? true
        try fields.require(isKnown, "features", "must be the campaign's")
        self.init(label: own, prior: prior, likelihoods: likelihoods, projection: projection)
    }
}

extension Fields {
    fileprivate func likelihood(_ classes: Int) throws -> Likelihood {
        let name = try name("name")
        if let kind = Feature.kinds[try word("kind", Feature.kinds.keys.sorted() + [gaussian])] {
            return try table(kind.modelled(self, name), classes)
        }
        let (mean, variance) = (try row("mean", classes), try row("variance", classes))
        try require(variance.allSatisfy { $0 > 0 && $0 <= largestVariance }, "variance", "must be above 0 and at most 1e300")
        let feature = try numbers(name, missing: true, bins: nil)
        return Likelihood(feature: feature, form: .gaussian(feature.numbers!, mean: mean, variance: variance))
    }
    private func table(_ feature: Feature, _ classes: Int) throws -> Likelihood {
        let shares = try list("likelihood", feature.size...feature.size).map { try row("likelihood", $0, classes) }
        for c in 0..<classes { try requireShares("likelihood", shares.map { $0[c] }) }
        return Likelihood(feature: feature, form: .table(shares))
    }
    fileprivate func requireShares(_ name: String, _ shares: [Double]) throws {
        try require(shares.allSatisfy { $0 >= 0 } && abs(shares.reduce(0, +) - 1) <= 1e-6, name, "must be at least 0 and add up to 1")
    }
}
