import Foundation

/// The receipts, and the cap that their sum is held to. Its description tells a person in plain words.
public struct Ledger: Sendable, CustomStringConvertible {
    /// What was contributed.
    public let receipts: [Receipt]
    /// The device's own cap.
    public let maxTotalEpsilon: Double
    /// To be told beside it.
    public var note: String { "If the storage of this installation is cleared, this count is lost and begins anew." }
    /// Privacy loss so far, rounded up.
    public var totalEpsilon: Double { total(receipts).roundedUp }
    public var description: String {
        let cap = written(maxTotalEpsilon)
        if receipts.isEmpty { return "This device has contributed to no campaign and has lost no privacy (epsilon 0 of at most \(cap))." }
        let campaigns = receipts.count == 1 ? "1 campaign" : "\(receipts.count) campaigns"
        let loss = "Privacy loss so far: epsilon \(written(totalEpsilon)) of at most \(cap)."
        return (["This device has contributed to \(campaigns). \(loss)"] + receipts.map(line)).joined(separator: "\n")
    }
    private func line(_ receipt: Receipt) -> String {
        let answers = receipt.questions.count == 1 ? "1 answer" : "\(receipt.questions.count) answers"
        let when = day(receipt.at) + (receipt.window.map { ", in \($0)" } ?? "")
        return "* \"\(plain(receipt.title))\" on \(when): \(answers), with noise added on this device; "
            + "epsilon \(written(receipt.epsilon)); \(words[receipt.fate]!)."
    }
    private func day(_ at: Date) -> String {
        let seconds = at.timeIntervalSince1970
        return years.contains(seconds) ? String(ISO8601DateFormatter().string(from: at).prefix(10)) : "an unknown day"
    }
}

/// From 1 to 9999, in seconds since 1970.
private let years = -62_135_596_800..<253_402_300_800.0
private let words: [Fate: String] = [
    .waiting: "on this device; nothing of it has left", .onItsWay: "an upload has begun, and is not known to have arrived",
    .arrived: "handed over", .refused: "the server says that it refused it; it is not sent again",
    .expired: "given up after its time; it may have arrived",
    .deleted: "deleted by a withdrawal after an upload had begun; it may have arrived",
]
/// What the receipts cost together, exactly.
func total(_ receipts: [Receipt]) -> Ratio { receipts.reduce(.zero) { $0 + Ratio($1.epsilon) } }

/// A report that left: what was asked and said, in words for people, when first, to whom, and what the server replied. Where the campaign's
/// document is no longer at hand, `said` is the payload, which is hexadecimal.
public struct SentReport: Equatable, Sendable {
    public let campaignId: String, title: String, url: String, asked: String, said: String, id: String, payload: String, at: Date
    public let reply: String?
}
