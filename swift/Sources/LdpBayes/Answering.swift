// From a record to perturbed reports: the one place where a person's data meets the coins. The label is looked up first, then the
// question is drawn, and only then is the record read, only where it is asked about.

private let secretBytes = 32
func makeSecret() throws -> [UInt8] { try randomBytes(secretBytes) }
/// The reports of one device, which together satisfy the campaign's epsilon-LDP: one, or with `answers: "all"` one of every group.
/// Missing, undeclared and unreadable values are answered as the campaign says of a missing one; ``DeviceCampaign/preview(_:label:)`` finds them.
/// `secret` is 32 bytes, by default those of a new device; `coins` other than the platform's are for tests. Throws ``LdpError``
/// `undeclared-label`, `invalid-secret` or `no-randomness`; nothing of the record was then read.
func perturb(
    _ campaign: Campaign, _ record: Record, label: Any? = nil, secret: [UInt8]? = nil, coins: Coins = .system()
) throws -> [Report] {
    let undeclared = failure("undeclared-label", "\(campaign.label.name) must be one of \(campaign.label.classes)")
    let classIndex = try campaign.label.index(of: Meaning(label)) ?? raise(undeclared)
    let secret = try secret ?? makeSecret()
    try ensure(secret.count == secretBytes, "invalid-secret")
    let first = try drawWindow(campaign, secret) * campaign.questions.count
    return try drawQuestions(campaign, secret).map { question in
        let reading = Reading(campaign: campaign, question: question, record: record, label: classIndex, coins: coins)
        let (item, id) = (try reading.item(), reportId(secret, campaign, question.group))
        return Report(question: first + question.index, id: id, payload: try question.mechanism.perturb(item, coins), item: item)
    }
}

/// What a record of class `label` answers to `question`, before the mechanism.
struct Reading {
    let campaign: Campaign, question: Question, record: Record, label: Int, coins: Coins
    private var classes: Int { campaign.label.classes.count }
    func item() throws -> Item {
        switch question.kind {
        case .label: return .index(label)
        case .pair: return .index(try index(question.feature) * classes + label)
        case .joint: return .index(try index(question.feature) * feature(question.other).cells + index(question.other))
        case .right: return .index(best(campaign.authored.evaluation!.model.scores(record)) == label ? 1 : 0)
        case .score: return .index(campaign.authored.evaluation.map { $0.place(of: $0.model.scores(record)) }! * classes + label)
        case .value, .square: return try encoded(label, of: classes, try quantity())
        case .product: return try encoded(0, of: 1, try quantity())
        }
    }
    /// A moment of its cell among `cells`, or one of the cell's signs: a stochastic bit, and 2 for what is missing.
    private func encoded(_ cell: Int, of cells: Int, _ quantity: Double?) throws -> Item {
        let value = Int64((quantity ?? 0) * Double(unit))
        if question.encoding == .moment { return .moment(cell: cell, value: value) }
        let sign = quantity == nil ? 2 : try coins.sign(value) ? 1 : 0
        return .index(question.mechanism.domainSize / cells * cell + sign)
    }
    /// The quantity asked for, in [-1, 1]; nil where it is missing and may be.
    func quantity() throws -> Double? {
        let (feature, other) = (feature(question.feature), feature(question.other ?? question.feature))
        let t = try scaled(feature)
        if question.kind == .value { return t }
        // The square of a value in [-1, 1], over the whole of [-1, 1] again.
        if ExactText(other.name) == ExactText(feature.name) { return t.map { 2 * ($0 * $0) - 1 } }
        return try scaled(other).flatMap { u in t.map { $0 * u } }
    }
    /// The clipped numbers behind a question about moments, nil for one that is not there.
    func numbers() throws -> [Double?] {
        try [question.feature, question.other].compactMap { $0 }.map { name in
            let feature = feature(name)
            return try value(feature).number.map(feature.numbers!.clipped)
        }
    }
    private func feature(_ name: String?) -> Feature { campaign.authored.asked.first { ExactText($0.name) == ExactText(name!) }! }
    private func scaled(_ feature: Feature) throws -> Double? {
        // No other features have questions about moments.
        if let number = try value(feature).number { return feature.numbers!.scaled(number) }
        return feature.missing ? nil : try randomT()
    }
    /// The index of a value: where it is missing that after the last, or random if none may be.
    private func index(_ name: String?) throws -> Int {
        let feature = feature(name)
        if let index = feature.index(of: try value(feature)) { return index }
        return feature.missing ? feature.size : try coins.below(feature.size)
    }
    /// A projection's missing input stands at its mean, or is random if none may be.
    private func value(_ feature: Feature) throws -> Meaning {
        try Projection.value(record, feature.name, campaign.authored.projection) { projection, i in
            let numbers = projection.numbers[i]
            return projection.inputs[i].missing ? projection.mean[i] : numbers.low + (try randomT() + 1) * (numbers.span / 2)
        }
    }
    /// A uniformly random multiple of 2^-52 in [-1, 1].
    private func randomT() throws -> Double { Double(Int64(try coins.below(UInt64(2 * unit + 1))) - unit) / Double(unit) }
}
