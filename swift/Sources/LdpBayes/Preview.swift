// Everything that a device would say of a record: for each question the truth, and how likely each answer is. Nothing is drawn, stored
// or sent; what it returns shows values of the record, and must not be sent anywhere.
import Foundation

private let mostShown = 8

/// One question of a campaign, and what would be said to it.
public struct PreviewedQuestion: Sendable {
    /// What it is about, and the probability that this device is asked it.
    public let asked: String, chance: Double
    /// What is true of the record, nil where no label is given, and where the record has no usable value of a feature that is complete: a
    /// random one is answered then.
    public let truth: String?
    /// What can be said and how likely an answer names it, none without a truth: what says one thing adds up to 1, a set names several,
    /// and of noisy numbers all that is sure is what is added to them.
    public let said: [(words: String, chance: Double)]
}

/// The problems of a record, and every question of the campaign, in its order. Its description is a table.
public struct Preview: Sendable, CustomStringConvertible {
    public let problems: [Problem], questions: [PreviewedQuestion]
    public var description: String {
        let wrong = problems.map { "! \(plain("\($0.feature): \($0.wrong); \($0.right)"))" }
        return (wrong + questions.flatMap(lines)).joined(separator: "\n")
    }
    private func lines(_ one: PreviewedQuestion) -> [String] {
        let truth = one.truth.map { "what is true is \(plain($0))" } ?? "what is true is not known"
        let head = "\(plain(one.asked)), asked with probability \(rounded(one.chance)): \(truth)"
        let shown = one.said.sorted { $0.chance > $1.chance }.prefix(mostShown).map { "  \(rounded($0.chance))  \(plain($0.words))" }
        return [head] + shown + (one.said.count > mostShown ? ["         and \(one.said.count - mostShown) more"] : [])
    }
    private func rounded(_ chance: Double) -> String { String(format: "%.3f", chance) }
    /// Of a record of a class, nil where that is not known. Throws nothing, whatever the record holds.
    init(_ campaign: Campaign, _ record: Record, _ label: Any?) {
        let classIndex = campaign.label.index(of: Meaning(label))
        var chances: [Int: Double] = [:]
        for pool in campaign.pools {
            let all = Double(pool.reduce(0) { $0 + $1.weight })
            for question in pool { chances[question.index] = Double(question.weight) / all }
        }
        questions = campaign.questions.map { question in
            let told = classIndex.flatMap { try? Truth(campaign, question, record, $0) }
            let (asked, chance) = (campaign.asked(question), chances[question.index]!)
            return PreviewedQuestion(asked: asked, chance: chance, truth: told?.words, said: told?.said ?? [])
        }
        problems = LdpBayes.problems(campaign, record, label)
    }
}

/// The truth in words, and what can be said with its probability. Throws where a coin was asked for, so that there is no one truth.
private struct Truth {
    let words: String, said: [(words: String, chance: Double)]
    private struct Drawn: Error {}
    init(_ campaign: Campaign, _ question: Question, _ record: Record, _ label: Int) throws {
        let mechanism = question.mechanism
        /// Every cell, with the probability that an answer marks it, for a true one that is drawn by `law`.
        func cells(_ law: [Int: Double]) -> [(words: String, chance: Double)] {
            let marking = mechanism.marking!
            return (0..<mechanism.domainSize).map { cell in
                let isTrue = law[cell] ?? 0
                return (campaign.cell(question, cell), share(marking.p) * isTrue + marking.q * (1 - isTrue))
            }
        }
        let reading = Reading(campaign: campaign, question: question, record: record, label: label, coins: Coins { throw Drawn() })
        if question.encoding == .index {
            guard case .index(let index) = try reading.item() else { preconditionFailure("an index is answered by an index") }
            words = campaign.cell(question, index)
            said = mechanism.noise.map { [(campaign.added(question, index, 1, noise: $0), 1)] } ?? cells([index: 1])
            return
        }
        let quantity = try reading.quantity()
        words = campaign.truth(question, label, try reading.numbers())
        let (cell, value) = (question.kind == .product ? 0 : label, Int64((quantity ?? 0) * Double(unit)))
        if question.encoding == .sign {
            let (first, whole) = (campaign.signs(question) * cell, Double(2 * unit))
            said = cells(quantity == nil ? [first + 2: 1] : [first: Double(unit - value) / whole, first + 1: Double(unit + value) / whole])
        } else if let noise = mechanism.noise {
            said = [(campaign.added(question, cell, Double(value) / Double(unit), noise: noise), 1)]
        } else {
            said = (0..<mechanism.domainSize).flatMap { one in
                let upper = mechanism.threshold(one == cell ? value : 0)
                return [0 &- upper, upper].enumerated().map { end, chance in
                    (campaign.end(question, one, end), share(chance) / Double(mechanism.domainSize))
                }
            }
        }
    }
}

/// Of 2^64.
func share(_ probability: UInt64) -> Double { Double(probability) * 0x1p-64 }
