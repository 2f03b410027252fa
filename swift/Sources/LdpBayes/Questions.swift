/// What a question is about.
public enum QuestionKind: String, CaseIterable {
    /// The class alone.
    case label
    /// A value with the class.
    case pair
    /// A number, by class.
    case value
    /// The square of a number, by class.
    case square
    /// The product of two numbers.
    case product
    /// Whether a model says the record's class.
    case right
    /// Where a model's score lies, with the class.
    case score
}

/// One question of a campaign. With `answers: "all"` a device answers one of each `group`, else one of all; `weight` says how often it
/// is drawn.
public struct Question {
    public let index: Int
    public let kind: QuestionKind
    /// The feature that it is about, and of a product the other one.
    public let feature: String?
    public let other: String?
    public let group: Int
    public let mechanism: Mechanism
    public let epsilon: Double
    public let weight: Int
    let encoding: Encoding
}

private let invalidParameters = "invalid-parameters"
private let mostDrawn = 1 << 30
let mostProducts = 8192

extension Fields {
    /// A question against the schema beside it; `losses` has the loss of every mechanism that was met.
    static func question(_ value: Json, _ index: Int, _ authored: Authored, _ losses: inout [Mechanism: Ratio?]) throws -> Question {
        let question = try read(value, "questions[\(index)]") { fields in
            let kind = try fields.choice("kind") as QuestionKind
            let encoding = try fields.choice("encoding") as Encoding
            let groups = authored.evaluation == nil ? authored.asked.count : 0
            let group = try fields.whole("group", kind == .product ? groups + 1...groups + mostProducts : 0...groups)
            // The label (group 0) names nothing, a product two features, any other question the feature of its group.
            let names = (try fields.text("feature"), try fields.text("other"))
            let (feature, other) = (authored.feature(names.0), authored.feature(names.1))
            let isRight = kind == .product
                ? feature != nil && other != nil
                : names.0.map { ExactText($0) } == (group > 0 ? ExactText(authored.asked[group - 1].name) : nil) && names.1 == nil
            try fields.require(isRight, "feature", "is not what the group is about")
            let cells = authored.cells(kind, encoding, feature, other)
            let domainSize = try fields.whole("domain_size", 1...mostCells)
            try fields.require(domainSize == cells, "domain_size", "must be what this kind, encoding and feature have")
            let name = try fields.name("mechanism")
            let known = Mechanism.table[name]
            try fields.require(known?.encodings.contains(encoding) ?? true, "mechanism", "does not answer this encoding")
            let epsilon = try fields.number("epsilon")
            let weight = try fields.whole("weight", 1...mostDrawn)
            guard let parameters = fields.raw("parameters")?.members else { throw fields.refusal("parameters", "must be an object") }
            return { () throws -> Question in
                guard let known else { throw failure("unknown-mechanism", name) }
                let numbers = known.numbers.map { wholeNumber(parameters[ExactText($0)], isProbability: $0 == "p" || $0 == "q") }
                guard parameters.count == numbers.count, !numbers.contains(nil) else {
                    throw failure(invalidParameters, "\(name) takes \(known.numbers.joined(separator: ", "))")
                }
                return Question(
                    index: index, kind: kind, feature: names.0, other: names.1, group: group,
                    mechanism: Mechanism(name, domainSize: domainSize, numbers.map { $0! }), epsilon: epsilon, weight: weight,
                    encoding: encoding)
            }
        }()
        let loss = losses[question.mechanism] ?? question.mechanism.loss
        losses[question.mechanism] = .some(loss)
        guard let loss else { throw failure(invalidParameters, "questions[\(index)]: these numbers make no mechanism") }
        try ensure(
            question.epsilon > 0 && loss.isWithin(question.epsilon), "loss-above-epsilon", "questions[\(index)]: above its epsilon")
        return question
    }
}

/// A positive integer, as a number or as decimal digits; nil for anything else, and for a probability of one or more.
private func wholeNumber(_ value: Json?, isProbability: Bool) -> Natural? {
    let number: Natural
    switch value {
    case .number(let double):
        guard let word = UInt64(exactly: double), 1..<1 << 53 ~= word else { return nil }
        number = Natural(word)
    case .text(let text):
        guard 1...40 ~= text.utf8.count, text.utf8[0] != UInt8(ascii: "0"), text.utf8.allSatisfy(\.isDigit)
        else { return nil }
        number = Natural(digits: text.utf8)
    default: return nil
    }
    return isProbability && number.word == nil ? nil : number
}

extension Authored {
    /// The cells of a question of this shape; nil for a shape that does not exist.
    fileprivate func cells(_ kind: QuestionKind, _ encoding: Encoding, _ feature: Feature?, _ other: Feature?) -> Int? {
        let classes = label.classes.count
        let isNumber = feature.map { asks == .moments || $0.isGaussian } ?? false
        let size: Int
        switch (kind, encoding) {
        case (.right, .index): return evaluation == nil ? nil : 2
        case (.score, .index): return evaluation.map { $0.places * classes }
        case (.pair, .index): return isNumber ? nil : feature.map { $0.cells * classes }
        case (.label, .index): return feature == nil && evaluation == nil ? classes : nil
        case (_, .index): return nil
        case (.value, _) where isNumber: size = classes
        case (.square, _) where isNumber && asks != .moments: size = classes
        case (.product, _) where isNumber && asks == .moments: size = 1
        default: return nil
        }
        // A sign has a third place where something may be missing; a moment, which has none, is not asked for then.
        let isOpen = feature?.missing == true || other?.missing == true
        return encoding == .sign ? (isOpen ? 3 : 2) * size : isOpen ? nil : size
    }
}

/// The questions of the device with this secret: the same at every call, whatever failed after the last one.
func drawQuestions(_ campaign: Campaign, _ secret: [UInt8]) throws -> [Question] {
    try campaign.pools.map { pool in
        let coins = Coins.keyed(secret, Array("question".utf8) + campaign.slot(pool[0].group))
        var ticket = try coins.below(pool.reduce(0) { $0 + $1.weight })
        return pool.first { question in
            ticket -= question.weight
            return ticket < 0
        }!
    }
}

/// The one window of a series in which the device with this secret answers, each as likely; 0 where there are none.
func drawWindow(_ campaign: Campaign, _ secret: [UInt8]) throws -> Int {
    try Coins.keyed(secret, Array("window\(campaign.id)".utf8)).below(campaign.windows?.count ?? 1)
}
