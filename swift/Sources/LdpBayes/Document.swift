import Foundation

/// What a campaign asks for: answers that a model is learned from, or that a projection is fitted from, how good a model is, or what
/// values people have, without a label.
enum Asks: String, CaseIterable { case model, moments, score, statistics }

/// A verified campaign: its id is the hash of its bytes, and the privacy loss of every question was recomputed.
public struct Campaign: Sendable {
    /// SHA-256 of the document's bytes, base64url.
    public let id: String
    /// The document itself.
    public let document: Data
    /// For people: it comes from the server, and holds no ends of lines.
    public var title: String { authored.title }
    /// For people, like ``title``.
    public var purpose: String { authored.purpose }
    /// Who answers for it, in the words of its author; nil where nobody is named.
    public var `operator`: String? { authored.operator }
    /// Where questions and complaints go.
    public var contact: String? { authored.contact }
    /// The privacy notice, by https.
    public var privacyUrl: String? { authored.privacyUrl }
    /// Days after its end until nothing is kept by which an answer could be found.
    public var keepDays: Int? { authored.keepDays }
    /// The class to learn; without a label one class, the empty text.
    public var label: Label { authored.label }
    /// The features that a record has.
    public var features: [Feature] { authored.features }
    /// A device contributes to one campaign of a study at most.
    public var study: String? { authored.study }
    /// When it opens; nil: it is open. A series opens with its first window.
    public var opens: Date? { authored.opens }
    /// When it closes; nil: nobody knows. A series closes a week after its last window.
    public var closes: Date? { authored.closes }
    /// An upper bound of what one device loses, recomputed and rounded up.
    public let realisedEpsilon: Double
    /// What a device may be asked.
    let questions: [Question]
    let authored: Authored, loss: Ratio
    /// The questions of which a device answers one each.
    let pools: [[Question]]
    /// Bytes of an upload, whatever it says: those of the longest that one device of this campaign sends.
    let uploadLength: Int
    static let largestDocument = 4 << 20
    /// The campaign of a document's bytes. `id`, where it is known, must be their hash. Throws ``LdpError``: `wrong-hash`,
    /// `invalid-document`, `unknown-mechanism`, `invalid-parameters`, `loss-above-epsilon`; `crowd-unsupported`, `issuer-unsupported` and
    /// `no-relay` for what this client cannot do.
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
        let pools =
            authored.answersAll
            ? Dictionary(grouping: questions, by: \.group).values.sorted { $0[0].index < $1[0].index } : [questions]
        let loss = pools.map { pool in pool.map { losses[$0.mechanism]!! }.max()! }.reduce(.zero, +)
        try ensure(loss.isWithin(authored.epsilon), "loss-above-epsilon", "the questions lose more than the campaign's epsilon")
        (self.id, self.document, self.questions, self.authored) = (hash, document, questions, authored)
        (self.loss, self.pools, realisedEpsilon) = (loss, pools, loss.roundedUp)
        uploadLength = longestUpload(pools, numbered: questions.count * ((authored.windows?.count ?? 1) - 1))
    }
    /// What keyed messages about a group's answer begin with: the campaign's id, and the slot.
    func slot(_ group: Int) -> [UInt8] { Array(id.utf8) + littleEndian(authored.answersAll ? group : 0, 4) }
}

private let (longestPurpose, mostCampaignCells, mostRelease, mostKeptDays) = (2000, 1 << 18, 1 << 40, 36_500)
private enum Answers: String, CaseIterable { case one, all }
private enum Discrete: String, CaseIterable { case auto, de, sue, oue, she, the, ss }
private enum OfNumbers: String, CaseIterable { case auto, laplace, onebit, sign }

/// All of a document but its questions.
struct Authored {
    let title: String, purpose: String, `operator`: String?, contact: String?, privacyUrl: String?, keepDays: Int?
    let label: Label, features: [Feature], study: String?, opens: Date?, closes: Date?
    /// What the campaign asks for; where it is a series, each device answers once in its life, in the window that it drew.
    let asks: Asks, windows: Windows?
    /// The features that questions are about: a projection's inputs are replaced by its outputs.
    let asked: [Feature]
    let epsilon: Double, answersAll: Bool, projection: Projection?, evaluation: Evaluation?
    init(_ fields: Fields) throws {
        _ = try fields.whole("version", 1...1)
        if (fields.raw("privacy")?["crowd"] ?? .null) != .null {
            throw failure("crowd-unsupported", "it promises what mixed answers reveal, and this client cannot check that")
        }
        if fields.raw("issuer") != nil { throw failure("issuer-unsupported", "its answers show tokens, and this client has none") }
        if fields.raw("gateway") != nil { throw failure("no-relay", "its answers go sealed by a relay, and this client seals none") }
        title = try fields.name("title")
        purpose = try fields.text("purpose", longest: longestPurpose) ?? ""
        (`operator`, contact) = (try fields.optionalName("operator"), try fields.optionalName("contact"))
        privacyUrl = try fields.optionalName("privacy_url")
        let isPage = privacyUrl?.range(of: #"^https://[0-9A-Z_a-z][!#-?A-~]{0,191}\z"#, options: .regularExpression) != nil
        try fields.require(privacyUrl == nil || isPage, "privacy_url", "must be an address such as https://example.org/privacy")
        keepDays = try fields.optionalWhole("keep_days", 1...mostKeptDays)
        let described = fields.raw("label")
        let asks = try fields.choice("asks", else: described == nil ? Asks.statistics : .model)
        try fields.require((asks == .statistics) == (described == nil), "asks", "must be statistics without a label, and only then")
        let isPlain = asks == .model || asks == .statistics
        let label =
            try described.map { value in
                try Fields.read(value, "label") { fields in
                    _ = try fields.optionalWhole("weight", 0...mostWeight)
                    return Label(name: try fields.name("name"), classes: try fields.declared("classes", most: mostClasses))
                }
            } ?? Label(name: "", classes: [""])
        let classes = label.classes.count
        let features = try fields.features("features", 1...mostFeatures, classes: classes, others: [label.name])
        try fields.require(asks != .moments || features.allSatisfy { $0.numbers != nil }, "features", "must be numbers")
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
            if asks == .moments || windows != nil { try fields.absent("release_every") }
            _ = try fields.optionalWhole("release_every", 2...mostRelease)
            let answers = try fields.choice("answers", among: isPlain ? [Answers.one, .all] : [.one], else: .one)
            return (try fields.positive("epsilon"), answers == .all)
        }
        let projection = try fields.raw("projection").map { value in
            try fields.require(asks == .model, "projection", "must be absent here")
            return try Fields.read(value, "projection") { try $0.projection(features, label, inStudy: study != nil) }
        }
        if asks != .score { try fields.absent("evaluation") }
        evaluation =
            try asks != .score
            ? nil
            : Fields.read(fields.raw("evaluation"), "evaluation") { try Evaluation($0, label, features) }
        if windows != nil { for name in ["opens", "closes"] { try fields.absent(name) } }
        opens = try windows?.from ?? fields.instant("opens")
        closes = try windows.map { $0.opens($0.count) + closingGrace } ?? fields.instant("closes")
        if let opens, let closes { try fields.require(opens < closes, "closes", "must be after it opens") }
        let inputs = Set((projection?.inputs ?? []).map { ExactText($0.name) })
        let asked = features.filter { !inputs.contains(ExactText($0.name)) } + (projection?.outputs ?? [])
        let cells = (asked.reduce(0) { $0 + $1.cells * ($1.moments == nil ? 1 : 2) } + 1) * classes
        try fields.require(cells <= mostCampaignCells, "features", "have too many values together")
        try fields.require(cells * (windows?.count ?? 1) <= mostCampaignCells, "windows", "have too many cells together")
        (self.asks, self.label, self.features, self.study) = (asks, label, features, study)
        (self.windows, self.projection, self.asked) = (windows, projection, asked)
    }
    func feature(_ name: String?) -> Feature? { name.flatMap { name in asked.first { ExactText($0.name) == ExactText(name) } } }
}
