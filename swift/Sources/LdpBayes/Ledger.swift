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
private func total(_ receipts: [Receipt]) -> Ratio { receipts.reduce(.zero) { $0 + Ratio($1.epsilon) } }

/// A report that left: what was asked and said, in words for people, when first, to whom, and what the server replied. Where the campaign's
/// document is no longer at hand, `said` is the payload, which is hexadecimal.
public struct SentReport: Equatable, Sendable {
    public let campaignId: String, title: String, url: String, asked: String, said: String, id: String, payload: String, at: Date
    public let reply: String?
}

/// Why a device does not answer a campaign; its text is the word that the other clients use.
public enum Refusal: String, Sendable {
    /// The person has switched contributing off.
    case switchedOff = "switched-off"
    /// The person agreed to another address; `grant` asks for this one.
    case otherRecipient = "other-recipient"
    /// It opens later.
    case notOpen = "campaign-not-open"
    /// It has closed.
    case closed = "campaign-closed"
    /// It has closed, which may still be taken back.
    case closing = "campaign-closing"
    /// It has all the answers that it takes.
    case full = "campaign-full"
    /// It was deleted.
    case deleted = "campaign-deleted"
    /// In a series, this device's window is still to come: come again then.
    case windowNotOpen = "window-not-open"
    /// In a series, this device's window is over; it answers in no other.
    case windowOver = "window-over"
    /// It costs more than the app allows for it.
    case aboveCap = "loss-above-cap"
    /// With what was answered before, it costs more than the device's cap.
    case aboveTotal = "total-above-cap"
    /// Another campaign of its study was answered.
    case studyAnswered = "study-answered"
    /// No directory of the publisher holds now.
    case directoryExpired = "directory-expired"
    /// The publisher does not name it.
    case notInDirectory = "not-in-directory"
}

extension State {
    /// When this device answers a series, once it has a secret to draw that from.
    func window(_ campaign: Campaign) throws -> Range<Date>? {
        try secret == nil ? nil : campaign.authored.windows?.times(drawWindow(campaign, State.bytes(secret)))
    }
    /// Why a device in this state does not answer; nil where it would.
    func refusal(_ campaign: Campaign, _ url: String, maxEpsilon: Double, maxTotalEpsilon: Double, now: Date) throws -> Refusal? {
        let (consent, own) = (self[campaign.id]?.consent, try window(campaign))
        let answered = receipts.compactMap(\.study).exact
        if !enabled { return .switchedOff }
        if let consent, consent.isGiven, consent.url != url { return .otherRecipient }
        if let opens = campaign.opens, now + clockTolerance < opens { return .notOpen }
        if let closes = campaign.closes, now - clockTolerance > closes { return .closed }
        if !campaign.loss.isWithin(maxEpsilon) { return .aboveCap }
        if !(total(receipts) + Ratio(campaign.realisedEpsilon)).isWithin(maxTotalEpsilon) { return .aboveTotal }
        if let study = campaign.study, answered.contains(ExactText(study)) { return .studyAnswered }
        if let own, !own.contains(now) { return now < own.lowerBound ? .windowNotOpen : .windowOver }
        return nil
    }
}
