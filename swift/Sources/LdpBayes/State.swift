import Foundation

/// What became of a contribution.
public enum Fate: String, Codable {
    /// Nothing of it has left.
    case waiting
    /// An upload has begun.
    case onItsWay = "on-its-way"
    /// The server says that it has it.
    case arrived
    /// The server says so; nobody can check it.
    case refused
    /// It was tried for too long.
    case expired
    /// It was withdrawn after an upload had begun.
    case deleted

    var words: String {
        switch self {
        case .waiting: return "not sent yet"
        case .onItsWay: return "being sent, may have arrived"
        case .arrived: return "arrived"
        case .refused: return "the server says that it refused it"
        case .expired: return "given up, may have arrived"
        case .deleted: return "deleted, may have arrived"
        }
    }
}

/// One contribution, made once and for good; `at` is by the device's clock.
public struct Receipt: Codable, Equatable {
    public let campaignId: String
    public let title: String
    public let study: String?
    public let epsilon: Double
    /// Numbered as in reports: in a series window * number of questions + index.
    public let questions: [Int]
    public let at: Date
    public let url: String
    public internal(set) var fate: Fate = .waiting
}

/// What a person decided, with a copy of what it was about.
struct Consent: Codable, Equatable {
    let url: String
    var title = ""
    var purpose = ""
    var epsilon = 0.0
    var grantedAt: Date?
    var withdrawnAt: Date?

    /// Whether the person agrees.
    var isGiven: Bool { grantedAt != nil && withdrawnAt == nil }
}

/// A report in the queue, or one that left it.
struct Kept: Codable, Equatable {
    let id: String
    let question: Int
    let asked: String
    let payload: String
    /// When its first upload began, nil where nothing of it has left.
    var at: Date?
    /// Nil where no answer has come, ``arrived``, or the code with which the server refused it.
    var reply: String?

    static let arrived = "arrived"
}

/// All about one campaign.
struct Entry: Codable, Equatable {
    let id: String
    var consent: Consent
    var receipt: Receipt?
    var reports: [Kept] = []
    /// Bytes of each upload.
    var uploadLength = 0
    /// Tries of what is in front that failed in a row.
    var attempts = 0
    var due: Date?
    /// Reports in an upload, where that is limited.
    var most: Int?
    var expires = Date.distantFuture
    var retries = 0
    var problem: String?

    /// The reports that wait for an answer, or for their first upload.
    var queued: [Kept] {
        guard let fate = receipt?.fate, [.waiting, .onItsWay].contains(fate) else { return [] }
        return reports.filter { $0.reply == nil }
    }
}

/// Everything that a device must not lose, as one text with a checksum: a device that forgot a receipt would answer again.
struct State: Codable, Equatable {
    /// Hexadecimal; nil where nobody has decided anything, and in an export.
    var secret: String?
    var enabled = true
    var campaigns: [Entry] = []

    var receipts: [Receipt] { campaigns.compactMap(\.receipt) }

    subscript(id: String) -> Entry? {
        get { campaigns.first { $0.id == id } }
        set {
            let place = campaigns.firstIndex { $0.id == id } ?? campaigns.count
            campaigns.replaceSubrange(place..<min(place + 1, campaigns.count), with: newValue.map { [$0] } ?? [])
        }
    }

    private static let checksumLength = 43

    init() {}

    /// A new device's state for nil. Throws ``LdpError`` `storage-corrupt`: what is damaged is never taken for empty.
    init(stored: Data?) throws {
        guard let stored else { return }
        let body = stored.dropFirst(State.checksumLength)
        try ensure(State.checksum(body) == stored.prefix(State.checksumLength), "storage-corrupt")
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { Date(milliseconds: try Int64(from: $0)) }
        self = try refused(as: "storage-corrupt") { try decoder.decode(State.self, from: body) }
    }

    func stored() throws -> Data {
        let body = try json()
        return State.checksum(body) + body
    }

    func json() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .custom { try $0.milliseconds.encode(to: $1) }
        return try encoder.encode(self)
    }

    private static func checksum(_ body: Data) -> Data { Data(base64url(sha256(body)).utf8) }
}

extension Date {
    init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1000) }

    /// Since 1970; what no calendar has is its nearest end.
    var milliseconds: Int64 {
        let seconds = timeIntervalSince1970
        return seconds.isNaN ? 0 : Int64((min(max(seconds, -1e12), 1e12) * 1000).rounded())
    }
}
