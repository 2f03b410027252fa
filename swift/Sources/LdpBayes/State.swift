import Foundation

/// What became of a contribution.
public enum Fate: String, Codable, Sendable {
    /// Nothing of it has left.
    case waiting
    /// An upload has begun.
    case onItsWay = "on-its-way"
    /// The server says that it has it, or a relay that will bring it there.
    case arrived
    /// The server says so; nobody can check it.
    case refused
    /// It was tried for too long.
    case expired
    /// It was withdrawn after an upload had begun.
    case deleted
}

/// One contribution, made once and for good; `at` is by the device's clock. Questions are numbered as in reports: in a series window *
/// number of questions + index.
public struct Receipt: Codable, Equatable, Sendable {
    public let campaignId: String, title: String, study: String?, epsilon: Double, questions: [Int], at: Date, url: String
    public internal(set) var fate = Fate.waiting
    /// Of a series: which of its windows, in words.
    public internal(set) var window: String? = nil
}

/// What a person decided, with a copy of what it was about.
struct Consent: Codable, Equatable {
    let url: String
    var title = "", purpose = "", epsilon = 0.0, grantedAt: Date? = nil, withdrawnAt: Date? = nil
    /// Whether the person agrees.
    var isGiven: Bool { grantedAt != nil && withdrawnAt == nil }
}

/// A report in the queue, or one that left it. `at`: when its first upload began, nil where nothing of it has left. `reply`: nil where
/// no answer has decided, ``arrived``, or the code with which the server refused it.
struct Kept: Codable, Equatable {
    let id: String, question: Int, asked: String, payload: String
    var at: Date? = nil, reply: String? = nil
    static let arrived = "arrived"
}

/// All about one campaign: `attempts` of what is in front that failed in a row, reports in an upload at `most` where that is limited,
/// bytes of each upload, and since when it is refused with words that count when they are `heard` again a day later.
struct Entry: Codable, Equatable {
    let id: String
    var consent: Consent, receipt: Receipt? = nil, reports: [Kept] = [], uploadLength = 0
    var attempts = 0, due: Date? = nil, most: Int? = nil, expires = Date.distantFuture, retries = 0, problem: String? = nil,
        heard: Date? = nil
    /// Whether what is queued is given up; who heard a final word once has a week to hear it again.
    func hasExpired(now: Date) -> Bool { now > max(expires, heard.map { $0 + closingGrace } ?? expires) && attempts >= expiryTries }
    /// The reports that wait for an answer, or for their first upload.
    var queued: [Kept] { [.waiting, .onItsWay].contains(receipt?.fate) ? reports.filter { $0.reply == nil } : [] }
}

/// Everything that a device must not lose, as one text with a checksum: a device that forgot a receipt would answer again.
struct State: Codable, Equatable {
    /// Hexadecimal; nil where nobody has decided anything, and in an export.
    var secret: String? = nil, enabled = true, campaigns: [Entry] = []
    /// Of the text; the first was written without one, and a receipt has its window since the second.
    private(set) var version: Int? = nil
    var receipts: [Receipt] { campaigns.compactMap(\.receipt) }
    subscript(id: String) -> Entry? {
        get { campaigns.first { $0.id == id } }
        set {
            let place = campaigns.firstIndex { $0.id == id } ?? campaigns.count
            campaigns.replaceSubrange(place..<min(place + 1, campaigns.count), with: newValue.map { [$0] } ?? [])
        }
    }
    private static let checksumLength = 43, newest = 2
    private struct Versioned: Decodable { let version: Int? }
    private static func checksum(_ body: Data) -> Data { Data(base64url(sha256(body)).utf8) }
    init() {}
    /// A new device's state for nil. Throws ``LdpError`` `storage-corrupt`: what is damaged is never taken for empty; and
    /// `storage-newer` for what a later version wrote.
    init(stored: Data?) throws {
        guard let stored else { return }
        let body = stored.dropFirst(State.checksumLength)
        try ensure(State.checksum(body) + body == stored, "storage-corrupt")
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { Date(milliseconds: try Int64(from: $0)) }
        let version = try refused(as: "storage-corrupt") { try decoder.decode(Versioned.self, from: body).version ?? 1 }
        try ensure(version <= State.newest, "storage-newer")
        self = try refused(as: "storage-corrupt") { try decoder.decode(State.self, from: body) }
    }
    /// With its checksum.
    func stored() throws -> Data {
        var state = self
        state.version = State.newest
        let body = try state.json()
        return State.checksum(body) + body
    }
    func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { try $0.milliseconds.encode(to: $1) }
        return try encoder.encode(self)
    }
    static func bytes(_ text: String?) throws -> [UInt8] { try unhex(text ?? "") ?? raise(failure("storage-corrupt")) }
}

extension Date {
    init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1000) }
    /// Since 1970; what no calendar has is its nearest end, and what is no number 1970.
    var milliseconds: Int64 { Int64(exactly: (min(max(timeIntervalSince1970, -1e12), 1e12) * 1000).rounded()) ?? 0 }
}
