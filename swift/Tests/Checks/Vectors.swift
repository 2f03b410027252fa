// Every test vector of protocols/vectors, accepted and refused. Prints how many cases of each kind passed.
import Foundation

@testable import LdpBayes

struct Failed: Error, CustomStringConvertible {
    let description: String
}

func check(_ right: Bool, _ wrong: @autoclosure () -> String) throws {
    if !right { throw Failed(description: wrong()) }
}

func equal<T: Equatable>(_ found: T, _ wanted: T) throws { try check(found == wanted, "\(found), not \(wanted)") }

/// The code with which something is refused.
func refuses(_ code: String, _ action: () throws -> Void) throws {
    do {
        try action()
    } catch let error as LdpError {
        return try equal(error.code, code)
    }
    throw Failed(description: "not refused, although \(code)")
}

final class Vectors {
    let files: [String: Json]
    private var checked: [String: Int] = [:]
    private(set) var campaigns: [String: Campaign] = [:]

    init(folder: URL) throws {
        let names = ["values", "documents", "reports", "uploads", "training", "directories", "answers", "words", "crowd"]
        files = try Dictionary(
            uniqueKeysWithValues: names.map {
                ($0, try Json(Data(contentsOf: folder.appendingPathComponent("\($0).json"))))
            })
    }

    func all() throws {
        try values()
        try documents()
        try reports()
        try uploads()
        try training()
        try directories()
        try words()
        for one in cases("answers", "cases") { try check("answers", one["name"]!.string) { try answers(one) } }
        print(written(checked))
    }

    func check(_ kind: String, _ name: Any?, _ test: () throws -> Void) throws {
        do { try test() } catch { throw Failed(description: "\(kind) (\(name ?? "")): \(error)") }
        checked[kind, default: 0] += 1
    }

    func cases(_ file: String, _ list: String) -> [Json] { files[file]![list]!.entries! }

    private func index(_ value: Json) -> Int? { value.number.map { Int($0) } }

    private func values() throws {
        let label = files["values"]!["label"]!
        let classes = Label(name: "", classes: label["classes"]!.entries!.map(\.string))
        let features = try cases("values", "features").map { described in
            var members = described.members!
            let indices = members.removeValue(forKey: ExactText("indices"))!.entries!
            return (try Fields.feature(.object(members), "", classes: 2), indices)
        }
        for (i, one) in cases("values", "cases").enumerated() {
            let written = one["value"]!
            if written["fraction"] != nil { continue }  // Swift has none
            let value = Meaning(written.plain)
            try check("values", "\(i): \(written)") {
                try equal(value.text?.utf8, one["text"]!.text?.utf8)
                let number = one["number"]!
                try equal(value.number.map { $0 + 0 }, number.number ?? number.text.map { Double($0.string!)! })
                for (feature, indices) in features { try equal(feature.index(of: value), index(indices[i])) }
                try equal(classes.index(of: value), index(label["indices"]!.entries![i]))
            }
        }
    }

    private func documents() throws {
        for one in cases("documents", "accepted") {
            let name = one["name"]!.string
            try check("documents", name) {
                let campaign = try Campaign(document: document(one["document"]), id: one["id"]!.string)
                campaigns[name] = campaign
                let off = campaign.realisedEpsilon / one["realised_epsilon"]!.number! - 1
                try Checks.check(off >= 0 && off < 1e-15, "loses \(campaign.realisedEpsilon)")
            }
        }
        for one in cases("documents", "alike") {
            try check("documents alike", one["name"]!.string) {
                let (found, like) = (try Campaign(document: document(one["document"])), campaigns[one["like"]!.string]!)
                try equal("\(found.questions)", "\(like.questions)")
            }
        }
        for one in cases("documents", "refused") {
            try check("documents refused", one["name"]!.string) {
                try refuses(one["code"]!.string) { _ = try Campaign(document: document(one["document"]), id: one["id"]?.text?.string) }
            }
        }
        for one in cases("crowd", "accepted") {
            try check("crowds", one["name"]!.string) {
                try refuses("crowd-unsupported") { _ = try Campaign(document: document(one["document"]), id: one["id"]!.string) }
            }
        }
    }

    private func reports() throws {
        for one in cases("reports", "draws") {
            let (campaign, secret) = (campaigns[one["document"]!.string]!, one["secret"]!.bytes)
            try check("draws", campaign.title) {
                try equal(try drawQuestions(campaign, secret).map(\.index), one["questions"]!.entries!.map { index($0)! })
                try equal(try drawWindow(campaign, secret), one["window"].flatMap(index) ?? 0)
            }
        }
        for one in cases("reports", "accepted") {
            let campaign = campaigns[one["document"]!.string]!
            try check("reports", one["document"]!.string) {
                let (script, label) = (Script(one["words"]), one["label"]!.plain)
                let made = try perturb(
                    campaign, record(one["record"], campaign, label), label: label, secret: one["secret"]!.bytes, coins: script.coins)
                for (report, wanted) in zip(made, one["reports"]!.entries!) {
                    try equal(report.question, index(wanted["question"]!))
                    try equal(report.item, item(wanted["item"]!))
                    try equal(report.id, wanted["id"]!.bytes)
                    try equal(report.payload, wanted["payload"]!.bytes)
                }
                try equal(made.count, one["reports"]!.entries!.count)
                try equal(hex(encodeUpload(made, campaign)), one["upload"]!.string)
                try equal(script.taken, one["words"]!.entries!.count)
            }
        }
        for one in cases("reports", "refused") {
            let (campaign, label) = (campaigns[one["document"]!.string]!, one["label"]?.plain)
            try check("records refused", one["code"]!.string) {
                try refuses(one["code"]!.string) {
                    let record = try record(one["record"], campaign, label)
                    _ = try perturb(campaign, record, label: label, secret: [UInt8](repeating: 0, count: 32), coins: Script(nil).coins)
                }
            }
        }
    }

    private func item(_ value: Json) -> Item {
        if let index = index(value) { return .index(index) }
        let moment = value["value"]!
        return .moment(cell: index(value["cell"]!)!, value: moment.number.map { Int64($0) } ?? Int64(moment.string)!)
    }

    private func uploads() throws {
        let campaign = campaigns[files["uploads"]!["document"]!.string]!
        for one in cases("uploads", "malformed") {
            try check("uploads refused", one["name"]!.string) {
                try refuses(one["code"]!.string) { _ = try decodedUpload(one["upload"]!.bytes, campaign) }
            }
        }
        for one in cases("uploads", "impossible") {
            let campaign = campaigns[one["document"]!.string]!
            try check("reports refused", one["code"]!.string) {
                let report = try decodedUpload(one["upload"]!.bytes, campaign)[0]
                try refuses(one["code"]!.string) { _ = try counted(campaign.questions[report.question].mechanism, report.payload) }
            }
        }
    }

    private func near(_ scores: [Double], _ wanted: Json) throws {
        for (score, right) in zip(scores, wanted.entries!) {
            let other = right.number ?? -.infinity
            try Checks.check(score == other || abs(score - other) <= 1e-9 * abs(other), "score \(score), not \(other)")
        }
    }

    private func training() throws {
        for one in cases("training", "accepted") {
            let name = one["document"]!.string
            try check("tallies", name) {
                let campaign = campaigns[name]!
                var tally = one["counts"]!.entries!.map { [Double](repeating: 0, count: $0.entries!.count) }
                var answered = [Double](repeating: 0, count: tally.count)
                for report in try decodedUpload(one["upload"]!.bytes, campaign) {
                    for (cell, count) in try counted(campaign.questions[report.question].mechanism, report.payload) {
                        tally[report.question][cell] += Double(count)
                    }
                    answered[report.question] += 1
                }
                try equal(answered, one["n"]!.entries!.map { $0.number! })
                try equal(tally, one["counts"]!.entries!.map { $0.entries!.map { $0.number! } })
            }
            try predictions("predictions", one)
        }
        try predictions("predictions of the impossible", files["training"]!["impossible"]!)
        for one in cases("training", "refused") {
            try check("models refused", one["name"]!.string) {
                try refuses(one["code"]!.string) { _ = try Classifier(model: document(one["model"])) }
            }
        }
    }

    private func predictions(_ kind: String, _ one: Json) throws {
        let classifier = try Classifier(model: document(one["model"]))
        for told in one["predictions"]!.entries! {
            try check(kind, told["class"]!.string) {
                let record = Record(told["record"]!.plainMembers)
                try near(classifier.scores(record), told["scores"]!)
                try equal(classifier.predict(record), told["class"]!.string)
            }
        }
    }

    /// Where the platform has no Ed25519, all but the check itself: it is then told which signatures are wrong.
    private func directories() throws {
        let key = files["directories"]!["key"]!.string
        for one in cases("directories", "accepted") + cases("directories", "refused") {
            let code = one["code"]?.text?.string
            let document = try document(one["document"])
            try check(code == nil ? "directories" : "directories refused", one["name"]!.string) {
                #if canImport(CryptoKit)
                let isSigned = LdpBayes.isSigned
                #else
                let isSigned: SignatureCheck = { _, _, _ in code != "wrong-signature" }
                if code == nil { try refuses("no-signatures") { _ = try Directory(document, key: key) } }
                #endif
                let read = { try Directory(document, key: key, isSigned: isSigned) }
                if let code { return try refuses(code) { _ = try read() } }
                let directory = try read()
                try equal(directory.version, index(one["version"]!))
                try equal(directory.expires, Date(document: one["expires"]!.string)!)
                try equal(directory.campaigns.mapValues { $0 }, one["campaigns"]!.members!.mapKeys { $0.text?.string })
            }
        }
    }
}

extension Json {
    var plainMembers: [String: Any?] { members!.mapKeys(\.plain) }
}

extension Dictionary where Key == ExactText, Value == Json {
    func mapKeys<T>(_ value: (Json) -> T) -> [String: T] {
        [String: T](uniqueKeysWithValues: map { ($0.key.string!, value($0.value)) })
    }
}
