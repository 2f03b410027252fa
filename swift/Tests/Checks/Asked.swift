// What the test programs are asked by: JSON, and scripted words.
import Foundation
import LdpBayesTesting

@testable import LdpBayes

extension Json {
    /// A text, with what stands for half of a surrogate pair replaced.
    var string: String { String(decoding: text!.utf8, as: UTF8.self) }

    var bytes: [UInt8] { unhex(string)! }

    /// What a record holds that is written like this; an object with the one member `integer`, `decimal` or `double` stands for such a
    /// number.
    var plain: Any? {
        switch self {
        case .null: return nil
        case .truth(let truth): return truth
        case .number(let number): return number
        case .text(let text): return text.string
        case .list(let entries): return entries.map(\.plain)
        case .object(let members):
            guard members.count == 1, let (type, value) = members.first, let text = value.text?.string else { return [String: Any]() }
            switch type.string {
            case "integer": return Meaning.whole(text)
            // What Foundation has no decimal for is a double here.
            case "decimal" where text.allSatisfy({ $0.isNumber || ".-".contains($0) }): return Decimal(string: text)
            default: return Double(text.lowercased().replacingOccurrences(of: "snan", with: "nan"))
            }
        }
    }
}

/// A record's type is the compiler's business; where JSON holds none, it is refused as the other clients refuse it.
func record(_ value: Json?, _ campaign: Campaign, _ label: Any?) throws -> Record {
    guard let members = value?.members else {
        throw failure(campaign.label.index(of: Meaning(label)) == nil ? "undeclared-label" : "not-a-record")
    }
    return Record(Dictionary(uniqueKeysWithValues: members.map { ($0.key.string!, $0.value.plain) }))
}

/// Coins from hexadecimal words, and how many were taken.
final class Script {
    private let words: [UInt64]
    var taken = 0

    init(_ words: Json?) { self.words = (words?.entries ?? []).map { UInt64($0.string, radix: 16)! } }

    var coins: Coins {
        Coins {
            precondition(self.taken < self.words.count, "more words were asked for than scripted")
            self.taken += 1
            return self.words[self.taken - 1]
        }
    }
}

/// JSON of texts, numbers, lists and dictionaries.
func written(_ value: Any?) -> String {
    switch value {
    case nil: return "null"
    case let text as String: return String(decoding: try! JSONEncoder().encode(text), as: UTF8.self)
    case let list as [Any?]: return "[" + list.map(written).joined(separator: ",") + "]"
    case let members as [String: Any?]: return "{" + members.map { written($0.key) + ":" + written($0.value) }.joined(separator: ",") + "}"
    case let other?: return "\(other)"
    }
}

/// The bytes of a document in a vector; throws for one that has no UTF-8.
func document(_ value: Json?) throws -> Data {
    guard let text = value?.text?.string else { throw failure(invalidDocument) }
    return Data(text.utf8)
}

/// What this client makes of a campaign, records and scripted words, for a comparison with Python.
func differential(_ line: Json) -> String {
    do {
        let campaign = try Campaign(document: try document(line["document"]))
        let secret = line["secret"]!.bytes
        let answers: [Any?] = try line["records"]!.entries!.map { one in
            let (values, label, script) = (one.entries![0], one.entries![1].plain, Script(one.entries![2]))
            do {
                let record = try record(values, campaign, label)
                let reports = try perturb(campaign, record, label: label, secret: secret, coins: script.coins)
                return [hex(encodeUpload(reports, campaign)), script.taken] as [Any?]
            } catch let error as LdpError {
                return error.code
            }
        }
        let told: [String: Any?] = [
            "id": campaign.id, "epsilon": campaign.realisedEpsilon, "closes": campaign.closes?.milliseconds,
            "window": try drawWindow(campaign, secret), "questions": try drawQuestions(campaign, secret).map(\.index), "answers": answers,
        ]
        return written(told)
    } catch {
        return written(["refused": (error as! LdpError).code])
    }
}

/// Answers as a test says.
struct FakeTransport: Transport, @unchecked Sendable {
    let answer: (Request) throws -> Answer
    func send(_ request: Request) throws -> Answer { try answer(request) }
}

/// This client as a program of lines, for an audit (docs/audit.md).
final class Lines {
    private var devices: [String: Stranded] = [:]
    private var campaign: Campaign?
    private var folder: String?

    func answer(_ line: Json) -> String {
        if let storage = line["storage"] { folder = storage.string }
        do {
            if let text = line["document"] { campaign = try Campaign(document: try document(text)) }
            let campaign = campaign!
            let label = line["label"]?.plain
            var values = line["record"]
            if case .object(var members) = values {
                // A dictionary's values cannot fail when they are read; what could not be read is not there.
                for (name, kind) in line["odd"]?.members ?? [:] {
                    let double = ["nan", "infinity", "-infinity"].contains(kind.string)
                    members[name] = double ? .object([ExactText("double"): kind]) : nil
                }
                values = .object(members)
            }
            let record = try record(values, campaign, label)
            guard let device = line["device"] else {
                return hex(encodeUpload(try perturb(campaign, record, label: label), campaign))
            }
            let name = "\(device.plain ?? "")"
            let stranded = try devices["\(campaign.id) \(name)"] ?? Stranded(campaign, name, folder)
            devices["\(campaign.id) \(name)"] = stranded
            if let now = line["now"] { stranded.now = Date(document: now.string)! }
            return try stranded.answer(line, record, label)
        } catch {
            return "!\((error as! LdpError).code)"
        }
    }
}

/// One device whose requests never arrive.
private final class Stranded {
    private let campaign: Campaign
    private let device: Device
    private let own: DeviceCampaign
    private let requests = Guarded([Request]())
    private let clock = Guarded(Date(milliseconds: 1_800_000_000_000))

    var now: Date {
        get { clock.value }
        set { clock.value = newValue }
    }

    init(_ campaign: Campaign, _ name: String, _ folder: String?) throws {
        self.campaign = campaign
        let (requests, clock) = (requests, clock)
        let transport = FakeTransport { request in
            requests.value.append(request)
            throw URLError(.networkConnectionLost)
        }
        let place = folder.map { URL(fileURLWithPath: $0).appendingPathComponent(hex(sha256(name.utf8))) }
        device =
            try place.map {
                try Device(FileStorage(folder: $0), maxTotalEpsilon: 1e6, transport: transport, now: { clock.value })
            } ?? Device(MemoryStorage(), maxTotalEpsilon: 1e6, transport: transport, now: { clock.value })
        own = try device.campaign("http://127.0.0.1:1", id: campaign.id, maxEpsilon: 1e6)
    }

    /// What a line makes leave this device: uploads, or, `sealed`, whole requests.
    func answer(_ line: Json, _ record: Record, _ label: Any?) throws -> String {
        if line["erase"] != nil {
            try device.erase()
        } else if let seconds = line["resend"]?.plain {
            pass(TimeInterval("\(seconds ?? 0)")!)
        } else {
            try contribute(record, label)
        }
        let whole = line["sealed"] != nil
        let sent = whole ? requests.value.map(text) : uploads.suffix(1).map { hex(Array($0)) }
        requests.value = []
        return sent.joined(separator: " ")
    }

    private var uploads: [Data] { requests.value.compactMap(\.body) }

    /// Lets time pass, a little at a time: what is due is sent.
    private func pass(_ seconds: TimeInterval) {
        for _ in 1...20 {
            now += seconds / 20
            _ = device.runOnce(timeout: 0.05)
        }
    }

    /// A request as it leaves, less what every HTTP client adds.
    private func text(_ request: Request) -> String {
        let lines = request.headers.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)\n" }.joined()
        let head = "\(request.body == nil ? "GET" : "POST") \(request.url)\n\(lines)\n"
        return hex(Array(head.utf8) + Array(request.body ?? Data()))
    }

    private func contribute(_ record: Record, _ label: Any?) throws {
        try own.load(campaign.document)
        try own.grant()
        if case .refused(let refusal) = try own.contribute(record, label: label) { throw LdpError.refused(refusal) }
        for _ in 1...100 where uploads.isEmpty {
            now += 86_400  // another process of the same storage may have left a time for the next attempt
            _ = device.runOnce(timeout: 0.05)  // or be sending
        }
    }
}
