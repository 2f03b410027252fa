// The test program: what it does is its first argument. tests/phones runs it.
import Foundation
import LdpBayesTesting

@testable import Checks
@testable import LdpBayes

let arguments = Array(CommandLine.arguments.dropFirst())
setvbuf(stdout, nil, _IOLBF, 0)
switch arguments[0] {
case "vectors": told { try Vectors(folder: URL(fileURLWithPath: arguments[1])).all() }
case "differential": eachLine(differential)
case "lines":
    let lines = Lines()
    eachLine(lines.answer)
case "deliver": told { try deliver(arguments[1], arguments[2], URL(fileURLWithPath: arguments[3])) }
case "decide": told { try decide(URL(fileURLWithPath: arguments[1]), URL(fileURLWithPath: arguments[2])) }
case "frozen": told { try frozen(URL(fileURLWithPath: arguments[1])) }
case "promises":
    told {
        let (vectors, folder) = (URL(fileURLWithPath: arguments[1]), URL(fileURLWithPath: arguments[2]))
        try Promises(vectors: vectors, folder: folder).all()
        try Faults(vectors: vectors, folder: folder).all()
    }
case "no-randomness": withoutRandomness()
case "arithmetic": eachLine(arithmetic)
case "hashes": eachLine { hex(sha256($0.entries![1].bytes)) + " " + hex(hmac($0.entries![0].bytes, $0.entries![1].bytes)) }
case "request": told { try request(arguments[1], Int(arguments[2])!, Double(arguments[3])!) }
case "contribute": told { try contribute(arguments[1], arguments[2]) }
case "speed": told { try speed(URL(fileURLWithPath: arguments[1])) }
default: fatalError("no task is called \(arguments[0])")
}

func eachLine(_ answer: (Json) -> String) {
    while let line = readLine() { print(answer(try! Json(line.utf8))) }
}

/// Microseconds for a report that is drawn, randomised and encoded.
func speed(_ documents: URL) throws {
    let cases = try Json(Data(contentsOf: documents))["accepted"]!.entries!
    let record: Record = ["colour": "green", "größe": 0.25, "hours": 41.5]
    for name in ["de-onebit", "oue-sign", "ss-laplace"] {
        let text = cases.first { $0["name"]!.string == name }!["document"]!.string
        let campaign = try Campaign(document: Data(text.utf8))
        func run(_ times: Int) throws -> Double {
            let begun = monotonic()
            for _ in 0..<times { _ = encodeUpload(try perturb(campaign, record, label: "yes"), campaign) }
            return (monotonic() - begun) * 1e6 / Double(times)
        }
        _ = try run(2000)
        print(name.padding(toLength: 12, withPad: " ", startingAt: 0), String(format: "%.1f us a report", try run(20_000)))
    }
}

/// A device that agrees, answers and delivers to an aggregator, until that is done; it may be killed at any moment.
func deliver(_ url: String, _ id: String, _ folder: URL) throws {
    var policy = Policy()
    policy.backoffBase = 0.02
    let device = try Device(FileStorage(folder: folder), maxTotalEpsilon: 100, policy: policy)
    let campaign = try device.campaign(url, id: id, maxEpsilon: 100)
    steps: while true {
        switch campaign.nextStep() {
        case .ask: try campaign.grant()
        case .contribute: _ = try campaign.contribute(["u": ["1", "2"].randomElement()!], label: ["a", "b"].randomElement()!)
        case .nothing: break steps
        }
    }
    let done = device.runOnce(timeout: 30)
    print("\(try campaign.status().fate!.rawValue) \(done) [\(try device.sent().map { $0.id + $0.payload }.joined(separator: ", "))]")
}

/// Why nothing is to be done about a document with this folder: before, and after a yes.
func decide(_ document: URL, _ folder: URL) throws {
    let campaign = try Campaign(document: try Data(contentsOf: document))
    let own = try Device(folder: folder, maxTotalEpsilon: 100).campaign("http://127.0.0.1:1", id: campaign.id, maxEpsilon: 100)
    try own.load(campaign.document)
    for step in [own.nextStep(), own.decide(true)] {
        if case .nothing(let reason) = step { print(reason) } else { print("goes on") }
    }
}

/// A storage of an earlier version, with an answer that waits: what it says, what it sends, and what it says then.
func frozen(_ folder: URL) throws {
    let aggregator = FakeAggregator()
    let now = Date(timeIntervalSince1970: 1_800_000_100)
    let device = try Device(FileStorage(folder: folder), maxTotalEpsilon: 10, transport: aggregator, now: { now })
    let id = try device.ledger().receipts[0].campaignId
    try aggregator.publish(Data(contentsOf: folder.appendingPathComponent("campaign-\(id)")))
    let campaign = try device.campaign("https://collect.example", id: id, maxEpsilon: 4)
    if case .nothing(let reason) = campaign.nextStep() { print(reason, try campaign.status().queued) }
    print(device.runOnce(timeout: 10))
    print(aggregator.uploads.map { hex(Array($0)) }.joined(separator: " "))
    let (sent, fate) = (try device.sent()[0].id, try campaign.status().fate!.rawValue)
    print(fate, sent, try campaign.withdraw().deleted, try device.ledger().receipts.count)
}

/// In a process to which the system gives no random bytes.
func withoutRandomness() {
    do {
        _ = try Coins.system().below(2)
        fatalError("drawn without a generator")
    } catch {
        precondition((error as? LdpError)?.code == "no-randomness", "without a generator: \(error)")
    }
    print("without a CSPRNG nothing is drawn")
}

/// What this client's whole numbers make of two of Python's, in hexadecimal.
func arithmetic(_ line: Json) -> String {
    let numbers = line.entries!.map { Natural(digits: $0.string.utf8) }
    let (a, b) = (max(numbers[0], numbers[1]), min(numbers[0], numbers[1]))
    let (quotient, remainder) = a.quotientAndRemainder(dividingBy: b)
    let results = [a + b, a - b, a * b, quotient, remainder, a << 77, a >> 77, logarithmUp(a, b).numerator]
    return results.map(\.hex).joined(separator: " ") + " \(a.bitLength) \(a.trailingZeroBitCount)"
}

extension Natural {
    fileprivate var hex: String {
        let digits = stride(from: 0, through: bitLength, by: 4).map { String((self >> $0).lowDigit, radix: 16) }
        return String(digits.joined().reversed())
    }

    private var lowDigit: UInt64 { (self - (self >> 4) << 4).word! }
}

/// A failure in one sentence, and not with all of Swift's stack.
func told(_ task: () throws -> Void) {
    do {
        try task()
    } catch {
        FileHandle.standardError.write(Data("\(error)\n".utf8))
        exit(1)
    }
}

/// One request by the platform's transport: what it got, or that it got nothing.
func request(_ url: String, _ longest: Int, _ timeout: TimeInterval) throws {
    let body = url.hasSuffix("post") ? Data("report".utf8) : nil
    do {
        let request = Request(url: url, headers: ["Content-Type": "x/y"], body: body, timeout: timeout, longest: longest)
        let answer = try URLSessionTransport().send(request)
        print(answer.status, answer.body.count, answer.headers["x-kept"] ?? "")
    } catch {
        print("nothing")
    }
}

/// Agrees to a document and answers it, in a folder: what came of it, or the code.
func contribute(_ document: String, _ folder: String) throws {
    let campaign = try Campaign(document: try Data(contentsOf: URL(fileURLWithPath: document)))
    let device = try Device(folder: URL(fileURLWithPath: folder), maxTotalEpsilon: 100)
    let own = try device.campaign("http://127.0.0.1:1", id: campaign.id, maxEpsilon: 100)
    do {
        try own.load(campaign.document)
        try own.grant()
        _ = try own.contribute(["u": "1"], label: "a")
    } catch let error as LdpError {
        print(error.code)
    }
    let receipts = (try? device.ledger().receipts.count).map { "\($0)" } ?? "unreadable"
    print(receipts)
}
