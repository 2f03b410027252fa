import Foundation

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
        if !(total(receipts) + campaign.loss).isWithin(maxTotalEpsilon) { return .aboveTotal }
        if let study = campaign.study, answered.contains(ExactText(study)) { return .studyAnswered }
        if let own, !own.contains(now) { return now < own.lowerBound ? .windowNotOpen : .windowOver }
        return nil
    }
}
