// What an answer means for a queue: the upload state machine, without I/O. A report that has left once may arrive once only, so a
// doubtful answer always means: the same bytes again, later.
import Foundation

// "Later", whatever their status.
private let retryableCodes: Set = [
    "campaign-not-open", "window-not-open", "not-found", "campaign-closing", "clock-unsettled", "unknown-campaign",
]
// Final when they are heard twice, a day apart by this device's clock: a server may have been wrong about the time, or about itself.
private let (terminal, twiceCodes): (Set, Set) = ([404, 409, 410, 451], ["campaign-closed", "campaign-full", "window-over"])
private let gone = 410  // at once: a deletion
private let (poison, tooLarge): (Set, Int) = ([400, 415, 422], 413)

/// The reports of one campaign that are due, and where they go.
struct Batch {
    let campaignId: String, url: String, reports: [Kept], length: Int
    func body() throws -> Data {
        let reports = try reports.map { try Report(question: $0.question, id: State.bytes($0.id), payload: State.bytes($0.payload)) }
        return Data(encodeUpload(reports, length: length))
    }
}

/// What to do now.
enum Plan {
    case send(Batch)
    case wait(TimeInterval)
    case nothing
}

extension State {
    /// Plans the delivery: schedules what is not scheduled, gives up what has expired, and takes what is due. `jitter` is from [0, 1).
    mutating func plan(now: Date, firstDelay: TimeInterval, _ policy: Policy, jitter: () throws -> Double) rethrows -> Plan {
        var batch: Batch?
        var wait: TimeInterval?
        for i in campaigns.indices where enabled && campaigns[i].consent.isGiven && !campaigns[i].queued.isEmpty {
            if campaigns[i].hasExpired(now: now) {
                campaigns[i].receipt?.fate = .expired
                continue
            }
            // No try lies further ahead than the policy allows, whatever a clock said when it was planned.
            let longest = campaigns[i].attempts > 0 ? max(policy.backoffLongest, retryAfterLongest) : firstDelay
            let due = try min(campaigns[i].due ?? now + firstDelay * jitter(), now + longest)
            campaigns[i].due = due
            let left = max(0, due.timeIntervalSince(now))
            wait = min(wait ?? left, left)
            if left > 0 || batch != nil { continue }
            let front = Array(campaigns[i].queued.prefix(campaigns[i].most ?? .max))
            let (id, url, length) = (campaigns[i].id, campaigns[i].consent.url, campaigns[i].uploadLength)
            batch = Batch(campaignId: id, url: url, reports: front, length: length)
            // From here on it may arrive, and is in the person's log.
            campaigns[i].receipt?.fate = .onItsWay
            for j in campaigns[i].reports.indices where front.contains(campaigns[i].reports[j]) {
                campaigns[i].reports[j].at = campaigns[i].reports[j].at ?? now
            }
        }
        return batch.map(Plan.send) ?? wait.map(Plan.wait) ?? .nothing
    }
    /// Takes note of the answer to an upload; nil where there was none.
    mutating func note(_ answer: Answer?, to batch: Batch, now: Date, _ policy: Policy, jitter: Double) {
        // What is due when the upload of another ends gets a moment anew: the server chooses when it answers.
        for i in campaigns.indices where (campaigns[i].due ?? now) <= now { campaigns[i].due = nil }
        // An entry is gone where it was erased meanwhile.
        self[batch.campaignId]?.note(answer, to: Set(batch.reports.map(\.id)), now: now, policy, jitter: jitter)
    }
}

extension Entry {
    fileprivate mutating func note(_ answer: Answer?, to ids: Set<String>, now: Date, _ policy: Policy, jitter: Double) {
        let (code, status) = (answer?.problemCode, answer?.status ?? 0)
        let rejected = status == 200 ? answer?.rejections : nil
        let isLater = code.map(retryableCodes.contains) == true
        let isPoison = !isLater && (status == tooLarge || poison.contains(status) && code != nil)
        let isWhole = code != nil && !isLater && terminal.contains(status)
        let isFinal = rejected.map { rejected in ids.allSatisfy { rejected[$0].map(twiceCodes.contains) == true } } ?? isWhole
        // No answer leaves what was heard as it is, any other one ends it; a clock that was set back hears it anew.
        if answer != nil { heard = isFinal ? min(heard ?? now, now) : nil }
        let isSecond = isFinal && (status == gone || heard.map { now.timeIntervalSince($0) >= secondWord } == true)
        if ids.count > 1, isPoison {
            // One at a time from now on: the one that cannot be taken is then alone.
            (most, attempts, due, problem) = (1, 0, now, reason(of: answer))
            return
        }
        let ofAll = isPoison || isSecond ? code : nil
        let decided = ids.reduce(into: [String: String]()) { decided, id in
            let code = rejected.map { $0[id] ?? Kept.arrived } ?? ofAll
            if let code, rejected == nil || isSecond || !retryableCodes.union(twiceCodes).contains(code) { decided[id] = code }
        }
        if !decided.isEmpty {
            problem = nil
            settle(decided, now: now)
        } else {
            // Exponential backoff with full jitter; Retry-After is the floor, up to its cap, for which a final word is left alone.
            let window = min(policy.backoffLongest, policy.backoffBase * pow(2, Double(min(attempts, 60))))
            let floor = isFinal ? retryAfterLongest : min(answer?.retryAfter(now: now) ?? 0, retryAfterLongest)
            due = Date(milliseconds: (now + max(window * jitter, floor)).milliseconds)
            (attempts, retries, problem) = (attempts + 1, retries + 1, rejected?[ids.first ?? ""] ?? reason(of: answer))
        }
    }
    private mutating func settle(_ replies: [String: String], now: Date) {
        for i in reports.indices { reports[i].reply = replies[reports[i].id] ?? reports[i].reply }
        (attempts, due) = (0, now)
        let hasArrived = reports.contains { $0.reply == Kept.arrived }  // also where it was deleted on its way
        guard let fate = receipt?.fate, queued.isEmpty, hasArrived || fate != .deleted else { return }
        receipt?.fate = hasArrived ? .arrived : .refused
    }
}

/// Why an answer is not what was asked for: its code, or its status.
func reason(of answer: Answer?) -> String { answer.map { $0.problemCode ?? "http-\($0.status)" } ?? "unreachable" }

extension Answer {
    /// The stable code of a problem document (RFC 9457); nil for anything else, such as a proxy's error page.
    var problemCode: String? {
        let isProblem = headers["content-type"]?.lowercased().hasPrefix("application/problem+json") == true
        return (isProblem ? try? Json(body) : nil)?.members.map { cleanCode($0[ExactText("code")]?.text) }
    }
    /// How long the server asks to wait: seconds, or a date by its own clock where it tells it.
    func retryAfter(now: Date) -> TimeInterval {
        let text = headers["retry-after"] ?? ""
        if text.utf8.count < 10, text.utf8.allSatisfy(\.isDigit) { return Double(text) ?? 0 }
        return Date(http: text).map { max(0, $0.timeIntervalSince(headers["date"].flatMap(Date.init(http:)) ?? now)) } ?? 0
    }
    /// `{id: code}` of what a success refuses; nil for a body that no aggregator sent.
    fileprivate var rejections: [String: String]? {
        guard let rejected = (try? Json(body))?["rejected"]?.entries else { return nil }
        let codes = rejected.compactMap { one -> (String, String)? in
            guard let pair = one.entries, pair.count >= 2, let id = pair[0].text?.string, let code = pair[1].text else { return nil }
            return (id, cleanCode(code))
        }
        return codes.count == rejected.count ? Dictionary(codes) { _, last in last } : nil
    }
}

/// A server's code as far as it is one: it is kept, and shown.
private func cleanCode(_ code: ExactText?) -> String {
    let signs = code?.utf8 ?? []
    let isClean = 1...64 ~= signs.count && signs.allSatisfy { isBase64url($0) || $0 == UInt8(ascii: ".") }
    return isClean ? String(decoding: signs, as: UTF8.self) : "unreadable-code"
}

extension Date {
    /// A date as HTTP writes it (RFC 9110): Sun, 06 Nov 1994 08:49:37 GMT.
    fileprivate init?(http text: String) {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        let months = ["", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        guard parts.count == 6, parts[5] == "GMT", let month = months.firstIndex(of: String(parts[2])) else { return nil }
        // What is no small number is a time that there is not.
        let numbers = ([parts[1], parts[3]] + parts[4].split(separator: ":")).map { UInt16($0).map(Int.init) ?? .max }
        guard numbers.count == 5, numbers[1] < 10_000 else { return nil }
        self.init(year: numbers[1], month: month, day: numbers[0], time: Array(numbers[2...]))
    }
}
