/// What a question is about.
enum QuestionKind: String, CaseIterable {
    /// The class alone; a value with the class.
    case label, pair
    /// A number and its square, by class; the product of two numbers.
    case value, square, product
    /// The values of two features, in a campaign without a label.
    case joint
    /// Whether a model says the record's class; where its score lies, with the class.
    case right, score
}

/// One question of a campaign. With `answers: "all"` a device answers one of each `group`, else one of all; `weight` says how often it
/// is drawn.
struct Question {
    let index: Int, kind: QuestionKind
    /// The feature that it is about, and of a product or a joint the other one.
    let feature: String?, other: String?
    let group: Int, mechanism: Mechanism, epsilon: Double, weight: Int
    let encoding: Encoding
}

private let invalidParameters = "invalid-parameters"
let mostProducts = 8192
let mostDrawn = 1 << 30

extension Fields {
    /// A question against the schema beside it; `losses` has the loss of every mechanism that was met.
    static func question(_ value: Json, _ index: Int, _ authored: Authored, _ losses: inout [Mechanism: Ratio?]) throws -> Question {
        let question = try read(value, "questions[\(index)]") { fields -> () throws -> Question in
            let kind = try fields.choice("kind") as QuestionKind
            let encoding = try fields.choice("encoding") as Encoding
            let groups = authored.evaluation == nil ? authored.asked.count : 0
            let isOfTwo = kind == .product || kind == .joint
            let group = try fields.whole("group", isOfTwo ? groups + 1...groups + mostProducts : 0...groups)
            // The label (group 0) names nothing, a product and a joint two features, any other question the feature of its group.
            let names = (try fields.text("feature"), try fields.text("other"))
            let (feature, other) = (authored.feature(names.0), authored.feature(names.1))
            let wanted = group > 0 && !isOfTwo ? ExactText(authored.asked[group - 1].name) : nil
            let isRight = isOfTwo ? feature != nil && other != nil : names.0.map { ExactText($0) } == wanted && names.1 == nil
            try fields.require(isRight, "feature", "is not what the group is about")
            let cells = authored.cells(kind, encoding, feature, other)
            let domainSize = try fields.whole("domain_size", 1...mostCells)
            try fields.require(domainSize == cells, "domain_size", "must be what this kind, encoding and feature have")
            let name = try fields.name("mechanism")
            let known = Mechanism.table[name]
            try fields.require(known?.encodings.contains(encoding) ?? true, "mechanism", "does not answer this encoding")
            let epsilon = try fields.number("epsilon")
            let weight = try fields.whole("weight", 1...mostDrawn)
            let parameters = try fields.raw("parameters")?.members ?? raise(fields.refusal("parameters", "must be an object"))
            return {
                let mechanism = try Mechanism(name, domainSize: domainSize, parameters)
                return Question(
                    index: index, kind: kind, feature: names.0, other: names.1, group: group, mechanism: mechanism, epsilon: epsilon,
                    weight: weight, encoding: encoding)
            }
        }()
        let loss = losses[question.mechanism] ?? question.mechanism.loss
        losses[question.mechanism] = .some(loss)
        let known = try loss ?? raise(failure(invalidParameters, "questions[\(index)]: these numbers make no mechanism"))
        try ensure(question.epsilon > 0 && known.isWithin(question.epsilon), "loss-above-epsilon", "questions[\(index)] loses more")
        return question
    }
}

extension Mechanism {
    fileprivate init(_ name: String, domainSize: Int, _ parameters: [ExactText: Json]) throws {
        let known = try Mechanism.table[name] ?? raise(failure("unknown-mechanism", name))
        let numbers = known.numbers.compactMap { number in
            wholeNumber(parameters[ExactText(number)]).flatMap { ["p", "q"].contains(number) && $0.word == nil ? nil : $0 }
        }
        let isRight = numbers.count == known.numbers.count && parameters.count == numbers.count
        try ensure(isRight, invalidParameters, "\(name) takes \(known.numbers.joined(separator: ", "))")
        self.init(name, domainSize: domainSize, numbers)
    }
}

/// A positive integer, as a number or as decimal digits; nil for anything else.
private func wholeNumber(_ value: Json?) -> Natural? {
    if let text = value?.text?.utf8 {
        return 1...40 ~= text.count && text[0] != UInt8(ascii: "0") && text.allSatisfy(\.isDigit) ? Natural(digits: text) : nil
    }
    return value?.number.flatMap { UInt64(exactly: $0) }.flatMap { 1..<1 << 53 ~= $0 ? Natural($0) : nil }
}

extension Authored {
    /// The cells of a question of this shape; nil for a shape that does not exist.
    fileprivate func cells(_ kind: QuestionKind, _ encoding: Encoding, _ feature: Feature?, _ other: Feature?) -> Int? {
        let classes = label.classes.count
        let isNumber = feature.map { asks == .moments || $0.moments != nil } ?? false
        let size: Int
        switch (kind, encoding) {
        case (.right, .index): return evaluation == nil ? nil : 2
        case (.score, .index): return evaluation.map { $0.places * classes }
        case (.pair, .index): return isNumber ? nil : feature.map { $0.cells * classes }
        case (.joint, .index):
            let isPossible = asks == .statistics && !isNumber && other?.moments == nil
            return isPossible ? feature!.cells * other!.cells : nil
        case (.label, .index): return feature == nil && evaluation == nil && asks != .statistics ? classes : nil
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
        return pool.first {
            ticket -= $0.weight
            return ticket < 0
        }!
    }
}
/// The one window of a series in which the device with this secret answers, each as likely; 0 where there are none.
func drawWindow(_ campaign: Campaign, _ secret: [UInt8]) throws -> Int {
    try Coins.keyed(secret, Array("window\(campaign.id)".utf8)).below(campaign.authored.windows?.count ?? 1)
}
