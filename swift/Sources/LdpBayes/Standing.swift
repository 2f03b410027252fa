import Foundation

/// Why a device answers no campaign that stands so; any other word, of a later aggregator, stops nobody.
private let states: [String: Refusal] = ["not-yet": .notOpen, "closing": .closing, "closed": .closed, "full": .full, "deleted": .deleted]

/// How one campaign stands, as its aggregator said on this day (UTC). Where that cannot be heard, or is not understood, the campaign
/// counts as open, and it is asked again ten minutes later at the earliest.
final class Standing: Sendable {
    private let install: Install, path: String, stored: String, said = Guarded<(state: String, at: Date)?>(nil), tried = Guarded<Date?>(nil)
    init(_ install: Install, path: String, id: String) { (self.install, self.path, stored) = (install, path, "state-\(id)") }
    /// Why no new answer is taken, as far as that was heard on this day.
    var refusal: Refusal? { fresh.flatMap { states[$0.state] } }
    /// Asks where that was not done on this day; `keep`s what is heard beside the document. Half of the time is for it. Throws nothing.
    func hear(keep: Bool, _ until: Deadline) {
        tried.change { tried in
            let now = install.now()
            if fresh == nil { said.value = kept ?? said.value }
            if fresh != nil || tried.map({ 0..<stateRetry ~= now.timeIntervalSince($0) }) == true { return }
            tried = now
            let answer = install.network.state("\(path)/state", wait: until.left / 2).flatMap { try? Json($0) }
            guard let state = answer?["state"]?.text?.string else { return }
            said.value = (state, now)
            if keep { self.keep() }
        }
    }
    /// Has what was heard beside the document, if that can be done.
    func keep() {
        guard let (state, at) = said.value else { return }
        try? install.storage.change(stored) { _ in Data("\(at.milliseconds) \(state)".utf8) }
    }
    private var kept: (state: String, at: Date)? {
        let parts = String(decoding: (try? install.storage.read(stored)) ?? Data(), as: UTF8.self).split(separator: " ", maxSplits: 1)
        return parts.count == 2 ? Int64(parts[0]).map { (String(parts[1]), Date(milliseconds: $0)) } : nil
    }
    private var fresh: (state: String, at: Date)? { said.value.flatMap { day(of: $0.at) == day(of: install.now()) ? $0 : nil } }
    private func day(of time: Date) -> Double { (time.timeIntervalSince1970 / stateAge).rounded(.down) }
}
