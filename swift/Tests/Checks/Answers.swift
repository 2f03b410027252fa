// The table of answers that all clients are held to (answers.json), and a thousand devices that hear them.
import Foundation
import LdpBayesTesting

@testable import LdpBayes

private let start = Date(milliseconds: 1_800_000_000_000)
private let (hour, day): (TimeInterval, TimeInterval) = (3600, 86_400)

func problem(_ status: Int, _ code: String, _ headers: [String: String] = [:]) -> Answer {
    let headers = headers.merging(["content-type": "application/problem+json"]) { $1 }
    return Answer(status: status, headers: headers, body: Data(#"{"code": "\#(code)"}"#.utf8))
}

func rejecting(_ codes: [String: String], _ headers: [String: String] = [:]) -> Answer {
    let rejected = codes.map { #"["\#($0)", "\#($1)"]"# }.joined(separator: ", ")
    return Answer(status: 200, headers: headers, body: Data(#"{"rejected": [\#(rejected)]}"#.utf8))
}

/// The queue of one case, and the moment at which it is.
private struct Queue {
    private static let id = "campaign"
    private var state = State()
    var now = start

    init(_ one: Json) {
        let reports = (0..<Int(one["reports"]!.number!)).map { Kept(id: "\($0)", question: 0, asked: "y", payload: "00") }
        let consent = Consent(url: "", title: "", purpose: "", epsilon: 0, grantedAt: start)
        var receipt = Receipt(campaignId: Queue.id, title: "", study: nil, epsilon: 1, questions: [0], at: start, url: "")
        receipt.fate = .onItsWay
        var entry = Entry(id: Queue.id, consent: consent, receipt: receipt, reports: reports)
        entry.expires = start + (one["expires"]?.number ?? 30 * day)
        state[Queue.id] = entry
    }

    var entry: Entry { state[Queue.id]! }
    var front: [Kept] { Array(entry.queued.prefix(entry.most ?? .max)) }
    var left: [String] { entry.reports.map { $0.reply ?? "waits" } }

    mutating func hear(_ told: Json) {
        now += told["after"]!.number!
        let batch = Batch(campaignId: Queue.id, url: "", reports: front, length: 0)
        state.note(answer(told), to: batch, now: now, Policy(), jitter: 0.5)
    }

    private func answer(_ told: Json) -> Answer? {
        let status = Int(told["status"]!.number!)
        let headers = told["headers"]?.members!.mapKeys { $0.text!.string! } ?? [:]
        if status == 0 { return nil }
        if let codes = told["rejected"]?.entries {
            let pairs = front.compactMap { one in codes[Int(one.id)!].text?.string.map { (one.id, $0) } }
            return rejecting(Dictionary(uniqueKeysWithValues: pairs), headers)
        }
        if let body = told["body"]?.text?.string { return Answer(status: status, headers: headers, body: Data(body.utf8)) }
        return problem(status, told["code"]!.text!.string!, headers)
    }
}

func answers(_ one: Json) throws {
    var queue = Queue(one)
    for told in one["answers"]!.entries! { queue.hear(told) }
    try equal(queue.left, one["left"]!.entries!.map { $0.text!.string! })
    if !queue.entry.queued.isEmpty {
        try equal(queue.entry.due!.timeIntervalSince(queue.now), one["wait"]?.number ?? 0)
        try equal(queue.front.count < queue.entry.queued.count, one["split"]?.plain as? Bool ?? false)
    }
    if let kept = one["kept"]?.number { try equal(queue.entry.hasExpired(now: queue.now + kept), false) }
    if let end = one["given_up"]?.number { try equal(queue.entry.hasExpired(now: queue.now + end), true) }
}

/// A thousand devices with clocks that are right, or for a day 200 days ahead or behind, and their one server.
final class Thousand {
    private let campaign: Campaign, record: Record
    private let now = Guarded(start), uploads = Guarded(0), state = Guarded("open")
    private let upload = Guarded<() throws -> Answer>({ rejecting([:]) })
    private let devices: [Device]

    init(_ campaign: Campaign, _ record: Record) throws {
        (self.campaign, self.record) = (campaign, record)
        let (now, uploads, state, upload) = (now, uploads, state, upload)
        let transport = FakeTransport { request in
            if request.body != nil {
                uploads.value += 1
                return try upload.value()
            }
            let said = Data(#"{"state": "\#(state.value)"}"#.utf8)
            return Answer(status: 200, headers: [:], body: request.url.hasSuffix("/state") ? said : campaign.document)
        }
        devices = try (0..<1000).map { number in
            let off = [0, 200 * day, -200 * day][number % 3]
            let clock: @Sendable () -> Date = { now.value + (now.value < start + day ? off : 0) }
            return try Device(MemoryStorage(), maxTotalEpsilon: 10, transport: transport, now: clock)
        }
    }

    private func own(_ device: Device) throws -> DeviceCampaign {
        try device.campaign("https://collect.example", id: campaign.id, maxEpsilon: 4)
    }

    /// What a server says while its clock is wrong, of the upload of a device.
    private let wrong: [(Device) throws -> Answer] = [
        { _ in problem(409, "campaign-closed") },
        { rejecting([try $0.sent()[0].id: "campaign-full"]) },
        { rejecting([try $0.sent()[0].id: "window-over"]) },
        { _ in problem(409, "campaign-closing", ["retry-after": "60"]) },
        { _ in problem(503, "clock-unsettled") },
        { _ in throw URLError(.networkConnectionLost) },
    ]

    func loseNothing() throws {
        for device in devices {
            let own = try own(device)
            try own.load(campaign.document)
            try own.grant()
            _ = try own.contribute(record, label: "yes")
        }
        for hours in [0, 1, 7, 14, 21, 23.99, 24, 31] {
            for (number, device) in devices.enumerated() {
                now.value = start + hours * hour
                let wrong = wrong[number % wrong.count]
                upload.value = { hours < 24 ? try wrong(device) : rejecting([:]) }
                _ = device.runOnce(timeout: 0)
                let status = try own(device).status()
                let isKept = status.queued + status.sent == 1 && status.dropped.isEmpty && status.fate != .expired
                let isRight = hours < 24 ? status.queued == 1 : hours < 31 || status.sent == 1
                try check(isKept && isRight, "\(hours) h, \(number): \(status)")
            }
        }
    }

    func askNobody() throws {
        let ends: [(String, Refusal)] = [("closed", .closed), ("full", .full), ("deleted", .deleted)]
        for (number, device) in devices.enumerated() {
            state.value = ends[number % 3].0
            guard case .nothing(ends[number % 3].1.rawValue) = try own(device).nextStep() else {
                throw Failed(description: "\(number) was asked")
            }
            try equal(try device.ledger().totalEpsilon, 0)
        }
        try equal(uploads.value, 0)
    }
}
