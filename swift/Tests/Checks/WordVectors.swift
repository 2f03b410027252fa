// What people are told, to the letter: words.json.
import Foundation

@testable import LdpBayes

extension Vectors {
    func words() throws {
        for row in cases("words", "ledgers") {
            try check("ledgers", row["name"]!.string) { try equal(ledger(row).description, row["text"]!.string) }
        }
        for (i, row) in cases("words", "said").enumerated() { try check("said", "\(i)") { try said(row) } }
        for row in cases("words", "explained") { try check("explained", row["document"]!.string) { try explained(row) } }
        for row in cases("words", "previews") { try check("previews", row["document"]!.string) { try preview(row) } }
    }
    private func ledger(_ row: Json) -> Ledger {
        let receipts = row["receipts"]!.entries!.map { one in
            let window = one["window"]!.string
            var receipt = Receipt(
                campaignId: "id", title: one["title"]!.string, study: nil, epsilon: one["epsilon"]!.number!,
                questions: Array(0..<Int(one["answers"]!.number!)), at: Date(timeIntervalSince1970: one["at"]!.number!), url: "url",
                window: window.isEmpty ? nil : window)
            receipt.fate = Fate(rawValue: one["fate"]!.string)!
            return receipt
        }
        return Ledger(receipts: receipts, maxTotalEpsilon: row["cap"]!.number!)
    }
    private func said(_ row: Json) throws {
        let campaign = campaigns[row["document"]!.string]!
        let question = campaign.questions[Int(row["question"]!.number!)]
        try equal(campaign.asked(question), row["asked"]!.string)
        try equal(campaign.said(question, row["payload"]!.bytes), row["said"]!.string)
    }
    private func explained(_ row: Json) throws {
        func told(_ sentence: Sentence, _ wanted: Json) throws {
            try equal([sentence.key, sentence.template, sentence.description], ["key", "template", "text"].map { wanted[$0]!.string })
            let parameters = wanted["parameters"]!.members!.map { name, value -> (String, Sentence.Parameter) in
                (name.string!, value.number.map { .number(Int($0)) } ?? .text(value.string))
            }
            try equal(sentence.parameters, Dictionary(uniqueKeysWithValues: parameters))
        }
        let explained = LdpBayes.explained(campaigns[row["document"]!.string]!, row["url"]!.string)
        try equal(explained.sentences.count, row["sentences"]!.entries!.count)
        for (sentence, wanted) in zip(explained.sentences, row["sentences"]!.entries!) { try told(sentence, wanted) }
        try told(explained.policy, row["policy"]!)
        try equal(explained.description, explained.sentences.map(\.description).joined(separator: " "))
    }
    /// A record that is none is the compiler's business.
    private func preview(_ row: Json) throws {
        let wrong = row["problems"]!.entries!.map(\.string)
        guard row["record"]!.members != nil else { return try equal(wrong, [""]) }
        let campaign = campaigns[row["document"]!.string]!
        let label = row["label"]!.plain
        let preview = Preview(campaign, try record(row["record"], campaign, label ?? campaign.label.classes[0]), label)
        try equal(preview.problems.map(\.feature), wrong)
        let questions = row["questions"]!.entries!
        try equal(preview.questions.map(\.asked), questions.map { $0["asked"]!.string })
        try equal(preview.questions.map(\.truth), questions.map { $0["truth"]!.text?.string })
        for (one, wanted) in zip(preview.questions, questions) {
            let pairs = wanted["said"]!.entries!.map { $0.entries! }
            try equal(one.said.map(\.words), pairs.map { $0[0].string })
            for (chance, right) in zip([one.chance] + one.said.map(\.chance), [wanted["chance"]!.number!] + pairs.map { $0[1].number! }) {
                try Checks.check(abs(chance - right) <= 1e-12 * right, "\(chance), not \(right)")
            }
        }
        try Checks.check(preview.description.split(separator: "\n").count >= preview.questions.count, preview.description)
    }
}
