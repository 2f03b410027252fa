// Words for people: the question, an answer's claim, the truth of a record, and a campaign's promise. All of it is a function of the
// campaign's document, the same to the letter in every client (protocols/vectors/words.json).
import Foundation

private let (mostNamed, people) = (3, 100)

/// What an app says, in a form that it translates: the `key`'s own words in another language take the same `parameters` as `template`,
/// the English ones, does by `{name}`. Its description is English.
public struct Sentence: Equatable, Sendable, CustomStringConvertible {
    /// A number, of which there may be one or many, or a text.
    public enum Parameter: Equatable, Sendable, CustomStringConvertible {
        case number(Int)
        case text(String)
        public var description: String {
            switch self {
            case .number(let number): "\(number)"
            case .text(let text): text
            }
        }
    }
    public let key: String, parameters: [String: Parameter], template: String
    public var description: String {
        template.components(separatedBy: "{").enumerated().map { at, part in
            let halves = part.components(separatedBy: "}")
            return at == 0 ? part : "\(parameters[halves[0]]!)" + halves.dropFirst().joined(separator: "}")
        }.joined()
    }
}

/// Two `sentences` for the person who is asked, one more for each of operator, contact, privacy notice and days of keeping that the
/// campaign has, and a paragraph for the app's privacy `policy`.
public struct Explanation: Equatable, Sendable, CustomStringConvertible {
    public let sentences: [Sentence], policy: Sentence
    public var description: String { sentences.map(\.description).joined(separator: " ") }
}

private let answers =
    "This device answers {answers} of {questions} questions about {label}, once, and changes what it says at random "
    + "before anything leaves it: the privacy loss is at most epsilon {epsilon}."
private let hidden =
    "Where {people} of many people with your answer would say what your device says, at least {others} of as many "
    + "people with any other answer would say it, too."
private let bare =
    "Where {people} of many people with your answer would say what your device says, fewer than 1 of as many people "
    + "with some other answer may say it, too: the noise hides little."
private let policy =
    "If you agree, this app takes part once in \"{title}\". Your device answers {answers} of {questions} questions about "
    + "{label}, drawn by lot, changes what it says at random (local differential privacy with epsilon {epsilon}) and "
    + "sends that to {url}, which sees the network address that it comes from, as with any request. "
    + "What is sent may be true of you or not, and nobody can tell for certain. It carries a "
    + "random number, which tells it from others, no name and no identifier of you or the device. You may withdraw at "
    + "any time: what has not left is deleted."

private let kept = "Days after its end until nothing is kept by which your answer could be found: at most {keep_days}."

/// What a campaign's noise means, in its own numbers; answers go to `url`.
func explained(_ campaign: Campaign, _ url: String) -> Explanation {
    let told: [String: Sentence.Parameter] = [
        "answers": .number(campaign.pools.count), "questions": .number(campaign.questions.count),
        "label": .text(plain(campaign.label.name.isEmpty ? campaign.title : campaign.label.name)),
        "epsilon": .text(written(campaign.realisedEpsilon)),
    ]
    // A report that somebody sends with probability P, anybody else sends with probability P exp(-epsilon) or more.
    let others = Int(Double(people) * exp(-campaign.realisedEpsilon))
    let noise =
        others > 0
        ? Sentence(key: "hidden", parameters: ["people": .number(people), "others": .number(others)], template: hidden)
        : Sentence(key: "bare", parameters: ["people": .number(people)], template: bare)
    let more = told.merging(["title": .text(plain(campaign.title)), "url": .text(url)]) { own, _ in own }
    let sentences = [Sentence(key: "answers", parameters: told, template: answers), noise] + forPeople(campaign)
    return Explanation(sentences: sentences, policy: Sentence(key: "policy", parameters: more, template: policy))
}

/// Members of a document that its author may leave out, each in a sentence.
private func forPeople(_ campaign: Campaign) -> [Sentence] {
    let told: [(String, Sentence.Parameter?, String)] = [
        ("operator", campaign.operator.map { .text(plain($0)) }, "{operator} is responsible for this."),
        ("contact", campaign.contact.map { .text(plain($0)) }, "Questions and complaints go to {contact}."),
        ("privacy_url", campaign.privacyUrl.map { .text($0) }, "The privacy notice: {privacy_url}"),
        ("keep_days", campaign.keepDays.map { .number($0) }, kept),
    ]
    return told.compactMap { key, value, template in value.map { Sentence(key: key, parameters: [key: $0], template: template) } }
}

extension Campaign {
    /// What a question is about.
    func asked(_ question: Question) -> String {
        let label = label.name
        switch question.kind {
        case .right: return "whether the model is right about \(label)"
        case .score: return "what the model says of \(label), and \(label)"
        case .label: return label
        case .value, .square: return beside("\(question.feature!) (\(question.kind.rawValue))", label)
        case .pair, .product, .joint: return beside(question.feature!, question.other ?? label)
        }
    }
    /// With the label, where there is one.
    private func beside(_ words: String, _ label: String) -> String { label.isEmpty ? words : "\(words) and \(label)" }
    /// What a payload claims; it is noise as well as truth, and nobody can tell which.
    func said(_ question: Question, _ payload: [UInt8]) -> String {
        let mechanism = question.mechanism
        if case .oneBit(let p) = mechanism.kind {
            let claim = end(question, number(payload.dropLast()), Int(payload.last!))
            return "\(claim) (what lies there says so with probability \(hundredths(p)))"
        }
        guard let marking = mechanism.marking else { return "\(mechanism.domainSize) numbers, of which noise is the most" }
        let cells = mechanism.marked(payload)
        let named = cells.prefix(mostNamed).map { cell(question, $0) }.joined(separator: "; ")
        let chance = "with probability \(hundredths(marking.p))"
        if marking.isOne { return "\(named) (true \(chance))" }
        let more = (cells.isEmpty ? "" : ": ") + named + (cells.count > mostNamed ? "; ..." : "")
        return "\(cells.count) of \(mechanism.domainSize) answers are marked\(more) (the true one is among them \(chance))"
    }
    /// The name of a cell of a question whose answers are cells.
    func cell(_ question: Question, _ cell: Int) -> String {
        let classes = label.classes
        if question.kind == .label { return classes[cell] }
        if question.kind == .right { return cell == 1 ? "right" : "wrong" }
        if question.encoding == .sign { return end(question, cell / signs(question), cell % signs(question)) }
        if question.kind == .joint {
            let (names, others) = (authored.feature(question.feature)!.cellNames, authored.feature(question.other)!.cellNames)
            return "\(names[cell / others.count]), \(others[cell % others.count])"
        }
        let names = authored.evaluation?.names ?? authored.feature(question.feature)!.cellNames
        return at(question, cell % classes.count, names[cell / classes.count])
    }
    /// Places of a `sign` question for each class (of a product: in all): 2, and a last one if it may be missing.
    func signs(_ question: Question) -> Int { question.mechanism.domainSize / (question.kind == .product ? 1 : label.classes.count) }
    /// An end of the range (0 the lower, 1 the upper), or that there is no value (2), with the class of a cell.
    func end(_ question: Question, _ cell: Int, _ end: Int) -> String {
        at(question, cell, ["the lower end", "the upper end", "missing"][end])
    }
    /// With the class of a cell; a product is of none.
    private func at(_ question: Question, _ cell: Int, _ words: String) -> String {
        question.kind == .product || label.name.isEmpty ? words : "\(words), \(label.classes[cell])"
    }
    /// The truth behind a question about moments: its feature's number, or those of a product's two.
    func truth(_ question: Question, _ label: Int, _ numbers: [Double?]) -> String {
        let known = numbers.compactMap { $0 }
        if known.count < numbers.count { return at(question, label, "missing") }
        let words = known.map(general).joined(separator: " times ")
        return at(question, label, question.kind == .square ? "\(words) squared" : words)
    }
    /// What a noisy vector says: its one number that is not 0, and the scale of the noise that is added to each.
    func added(_ question: Question, _ place: Int, _ value: Double, noise: Double) -> String {
        let words = question.encoding == .moment ? label.classes[place] : cell(question, place)
        let others = question.mechanism.domainSize - 1
        let parts = [
            question.kind == .product || words.isEmpty ? general(value) : "\(general(value)) at \(words)",
            others > 0 ? "0 at \(others) others" : nil,
            "noise of scale \(general(noise)) is added to each",
        ]
        return parts.compactMap { $0 }.joined(separator: "; ")
    }
}

private let escaped: Set<Unicode.GeneralCategory> = [
    .control, .format, .surrogate, .privateUse, .lineSeparator, .paragraphSeparator, .spaceSeparator,
]
/// A server's text on one line: cursor moves, line breaks, writing directions and every space but the usual one are `\u` and four digits
/// for each of UTF-16's units; a quotation mark is a single one.
func plain(_ text: String) -> String {
    text.unicodeScalars.map { sign in
        if sign == "\"" { return "'" }
        if sign == " " || !escaped.contains(sign.properties.generalCategory) { return String(sign) }
        return String(sign).utf16.map { String(format: "\\u%04x", Int($0)) }.joined()
    }.joined()
}

/// The shortest decimals that mean this double, rounded up to four.
func written(_ epsilon: Double) -> String {
    let ratio = Ratio(writtenAs: epsilon)
    guard let units = (ratio.numerator * Natural(10_000)).dividedUp(by: ratio.denominator).word else { return "\(epsilon)" }
    let decimals = "\(10_000 + units % 10_000)".dropFirst()
    let shown = String(decimals.reversed().drop { $0 == "0" }.reversed())
    return "\(units / 10_000)" + (shown.isEmpty ? "" : ".\(shown)")
}

/// A number with six digits, as C's `%g` writes it.
func general(_ number: Double) -> String { String(format: "%g", number + 0) }

/// A probability of so many 2^64ths in hundredths, halves up.
private func hundredths(_ probability: UInt64) -> String {
    let hundredths = ((Natural(200) * Natural(probability) + .power(ofTwo: 64)) >> 65).word!
    return "\(hundredths / 100).\("\(100 + hundredths % 100)".dropFirst())"
}

/// Of bytes, the lowest first.
func number(_ bytes: some BidirectionalCollection<UInt8>) -> Int { bytes.reversed().reduce(0) { $0 << 8 | Int($1) } }
