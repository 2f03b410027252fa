import Foundation

/// What a campaign asks for.
public enum Asks: String, CaseIterable {
    /// Answers that a model is learned from.
    case model
    /// Answers that a projection is fitted from.
    case moments
    /// How good a model is.
    case score
}

/// A verified campaign: its id is the hash of its bytes, and the privacy loss of every question was recomputed.
public struct Campaign {
    /// SHA-256 of the document's bytes, base64url.
    public let id: String
    /// The document itself.
    public let document: Data
    /// What a device may be asked.
    public let questions: [Question]
    /// An upper bound of what one device loses, recomputed and rounded up.
    public let realisedEpsilon: Double
    let loss: Ratio
    private let authored: Authored

    /// For people: it comes from the server, and holds no ends of lines.
    public var title: String { authored.title }
    /// For people, like ``title``.
    public var purpose: String { authored.purpose }
    /// The class to learn.
    public var label: Label { authored.label }
    /// The features that a record has.
    public var features: [Feature] { authored.features }
    /// What the campaign asks for.
    public var asks: Asks { authored.asks }
    /// A device contributes to one campaign of a study at most.
    public var study: String? { authored.study }
    /// Where it is a series: each device answers once in its life, in the window that it drew.
    public var windows: Windows? { authored.windows }
    /// When it opens; nil: it is open. A series opens with its first window.
    public var opens: Date? { authored.opens }
    /// When it closes; nil: nobody knows. A series closes a week after its last window.
    public var closes: Date? { authored.closes }

    /// The features that questions are about: a projection's inputs are replaced by its outputs.
    var asked: [Feature] { authored.asked }
    var projection: Projection? { authored.projection }
    var evaluation: Evaluation? { authored.evaluation }
    var answersAll: Bool { authored.answersAll }
    /// The questions of which a device answers one each.
    let pools: [[Question]]
    /// Bytes of an upload, whatever it says: those of the longest that one device of this campaign sends.
    let uploadLength: Int

    static let largestDocument = 4 << 20

    /// The campaign of a document's bytes. `id`, where it is known, must be their hash. Throws ``LdpError``: `wrong-hash`,
    /// `invalid-document`, `unknown-mechanism`, `invalid-parameters`, `loss-above-epsilon`.
    public init(document: Data, id: String? = nil) throws {
        try ensure(document.count <= Campaign.largestDocument, invalidDocument, "document: is longer than 4 MiB")
        let hash = base64url(sha256(document))
        try ensure(id == nil || id == hash, "wrong-hash")
        var values: [Json] = []
        let authored = try Fields.read(try Json(document), "") { fields in
            values = try fields.list("questions", 1...2 * mostFeatures + 1 + mostProducts)
            return try Authored(fields)
        }
        var losses: [Mechanism: Ratio?] = [:]
        let questions = try values.enumerated().map { try Fields.question($1, $0, authored, &losses) }
        let shapes = Set(questions.map { [$0.group, QuestionKind.allCases.firstIndex(of: $0.kind)!] })
        try ensure(shapes.count == questions.count, invalidDocument, "questions: must be different")
        let pools = authored.answersAll
            ? Dictionary(grouping: questions, by: \.group).values.sorted { $0[0].index < $1[0].index } : [questions]
        let loss = pools.map { pool in pool.map { losses[$0.mechanism]!! }.max()! }.reduce(.zero, +)
        try ensure(loss.isWithin(authored.epsilon), "loss-above-epsilon", "the questions lose more than the campaign's epsilon")
        self.id = hash
        self.document = document
        self.questions = questions
        self.loss = loss
        self.authored = authored
        self.pools = pools
        realisedEpsilon = loss.roundedUp
        uploadLength = longestUpload(pools, numbered: questions.count * ((authored.windows?.count ?? 1) - 1))
    }

    /// What keyed messages about a group's answer begin with: the campaign's id, and the slot.
    func slot(_ group: Int) -> [UInt8] { Array(id.utf8) + littleEndian(answersAll ? group : 0, 4) }
}

private enum Answers: String, CaseIterable { case one, all }
private enum Discrete: String, CaseIterable { case auto, de, sue, oue, she, the, ss }
private enum OfNumbers: String, CaseIterable { case auto, laplace, onebit, sign }

/// All of a document but its questions.
struct Authored {
    let title: String
    let purpose: String
    let label: Label
    let features: [Feature]
    let asked: [Feature]
    let epsilon: Double
    let answersAll: Bool
    let asks: Asks
    let study: String?
    let projection: Projection?
    let evaluation: Evaluation?
    let windows: Windows?
    let opens: Date?
    let closes: Date?

    private static let longestPurpose = 2000
    private static let mostCampaignCells = 1 << 18
    private static let mostRelease = 1 << 40

    init(_ fields: Fields) throws {
        _ = try fields.whole("version", 1...1)
        title = try fields.name("title")
        purpose = try fields.text("purpose", longest: Authored.longestPurpose) ?? ""
        let asks = try fields.choice("asks", else: Asks.model)
        let isPlain = asks == .model
        let label = try Fields.read(fields.raw("label"), "label") { fields in
            _ = try fields.optionalWhole("weight", 0...mostWeight)
            return Label(name: try fields.name("name"), classes: try fields.declared("classes", most: mostClasses))
        }
        let classes = label.classes.count
        let features = try fields.features("features", 1...mostFeatures, classes: classes, others: [label.name])
        try fields.require(asks != .moments || features.allSatisfy(\.isContinuous), "features", "must be continuous")
        let study = isPlain ? try fields.optionalName("study") : try fields.name("study")
        let windows = try fields.raw("windows").map { value in
            try fields.require(isPlain, "windows", "must be absent here")
            return try Fields.read(value, "windows", Windows.init)
        }
        (epsilon, answersAll) = try Fields.read(fields.raw("privacy"), "privacy") { fields in
            _ = try fields.choice("discrete", else: Discrete.auto)
            _ = try fields.choice("continuous", else: OfNumbers.auto)
            if let theta = try fields.optionalNumber("theta") {
                try fields.require(theta > 0 && theta <= 1, "theta", "must be above 0 and at most 1")
            }
            if asks == .moments || windows != nil {
                try fields.absent("release_every")
            } else {
                _ = try fields.optionalWhole("release_every", 2...Authored.mostRelease)
            }
            let answers = try fields.choice("answers", among: isPlain ? [Answers.one, .all] : [.one], else: .one)
            return (try fields.positive("epsilon"), answers == .all)
        }
        let projection = try fields.raw("projection").map { value in
            try fields.require(isPlain, "projection", "must be absent here")
            return try Fields.read(value, "projection") { try $0.projection(features, label, inStudy: study != nil) }
        }
        if asks == .score {
            evaluation = try Fields.read(fields.raw("evaluation"), "evaluation") { try Evaluation($0, label, features) }
        } else {
            try fields.absent("evaluation")
            evaluation = nil
        }
        if let windows {
            try fields.absent("opens")
            try fields.absent("closes")
            (opens, closes) = (windows.from, windows.opens(windows.count) + closingGrace)
        } else {
            (opens, closes) = (try fields.instant("opens"), try fields.instant("closes"))
        }
        if let opens, let closes { try fields.require(opens < closes, "closes", "must be after it opens") }
        let inputs = Set((projection?.inputs ?? []).map { ExactText($0.name) })
        let asked = features.filter { !inputs.contains(ExactText($0.name)) } + (projection?.outputs ?? [])
        let cells = (asked.reduce(0) { $0 + $1.cells * ($1.isGaussian ? 2 : 1) } + 1) * classes
        try fields.require(cells <= Authored.mostCampaignCells, "features", "have too many values together")
        try fields.require(
            cells * (windows?.count ?? 1) <= Authored.mostCampaignCells, "windows", "have too many cells together")
        (self.asks, self.label, self.features, self.study) = (asks, label, features, study)
        (self.windows, self.projection, self.asked) = (windows, projection, asked)
    }

    func feature(_ name: String?) -> Feature? { name.flatMap { name in asked.first { ExactText($0.name) == ExactText(name) } } }
}
