import Foundation

/// A person may agree all the same.
private let agreeable: Set<Refusal> = [.otherRecipient, .windowNotOpen]

/// What an app has to do now.
public enum NextStep: Sendable {
    /// Show the person title, purpose and `realisedEpsilon`, and `decide` by what they say. The reason is `other-recipient` where they have
    /// agreed to another address.
    case ask(Campaign, reason: String? = nil)
    /// The person has agreed, and no answer is given yet; in a series, this device's window is open.
    case contribute
    /// `answered`, `declined`, or the code of what stands against answering: of a ``Refusal``, of the storage, of the network, of a document
    /// that is none, `crowd-unsupported`, `issuer-unsupported`, `no-signatures`; `unexpected` for an error that is none of this library's.
    case nothing(reason: String)
}

/// What became of a call of `contribute`.
public enum Contribution: Equatable, Sendable {
    /// The answer is on disk, from now on or already, and is sent once.
    case answered(Receipt)
    /// The device does not answer; nothing was drawn and nothing spent.
    case refused(Refusal)
}

/// What a withdrawal could do: reports deleted, how many of them may arrive all the same, and the loss given back.
public struct Withdrawal: Equatable, Sendable { public let deleted: Int, onItsWay: Int, refunded: Double }

/// What happened so far in one campaign.
public struct Status: Equatable, Sendable {
    /// Whether the person agrees, nil until somebody decided; what became of the contribution.
    public let consent: Bool?, fate: Fate?
    /// Reports that wait; reports that the server says it has; tries that failed.
    public let queued: Int, sent: Int, retries: Int
    /// Reports that left the queue otherwise, by reason.
    public let dropped: [String: Int]
    /// When the next try is due; the code of the last failure.
    public let nextTry: Date?, problem: String?
}

/// One campaign, as one device sees it. Safe with any number of threads and processes; every call blocks.
public final class DeviceCampaign: Sendable {
    /// The campaign's id.
    public let id: String
    private let install: Install, url: String, maxEpsilon: Double, signed: Signed?, standing: Standing, known = Guarded<Campaign?>(nil)
    /// The newest model of this life.
    private let model = Guarded<Data?>(nil)
    private let isRenewing = Guarded(false)
    init(_ install: Install, url: String, id: String, maxEpsilon: Double, _ publisher: Publisher?) {
        (self.install, self.url, self.id, self.maxEpsilon) = (install, url, id, maxEpsilon)
        signed = publisher.map { Signed($0, install, url: url, id: id) }
        standing = Standing(install, path: "\(url)/v1/campaigns/\(id)", id: id)
    }
    /// The verified campaign: at hand, or fetched. Nothing is stored before `grant()`. Throws ``LdpError`` for what is not what its
    /// id and its epsilon promise, or not signed, and ``LdpError/away(code:)``, `timeout` at the end of the time.
    @discardableResult
    public func fetch(timeout: TimeInterval = 5) throws -> Campaign { try inTime(timeout) { try self.fetch($0) } }
    private func fetch(_ until: Deadline) throws -> Campaign {
        try signed?.refresh(until)
        return try atHand() ?? load(install.network.get(path, longest: Campaign.largestDocument, until))
    }
    /// Takes the document from the app instead of fetching it; verified the same way.
    @discardableResult
    public func load(_ document: Data) throws -> Campaign {
        let campaign = try Campaign(document: document, id: id)
        known.value = campaign
        return campaign
    }
    /// What an app has to do now; call it at every start. It never throws. Whatever the person decides is remembered: nobody is asked
    /// twice, and nobody whom the storage could not remember.
    public func nextStep(timeout: TimeInterval = 5) -> NextStep { step("next-step", timeout) { _ in } }
    /// Takes the person's answer to ``NextStep/ask(_:reason:)``, by `grant` or `withdraw`; the next step, which is what to do now. Never
    /// throws: where the answer could not be kept, the reason says why, and the person is asked again.
    @discardableResult
    public func decide(_ agreed: Bool, timeout: TimeInterval = 5) -> NextStep {
        step("decide", timeout) { until in if agreed { try self.grant(until) } else { try self.withdraw() } }
    }
    private func step(
        _ name: String, _ timeout: TimeInterval, after first: @escaping @Sendable (Deadline) throws -> Void
    ) -> NextStep {
        do {
            let next = try inTime(timeout) { until in
                try first(until)
                return try self.step(until)
            }
            install.teller.tell(name, id, word(for: next))
            return next
        } catch {
            // Whatever it is, it must not stop the app at every start.
            let reason = (error as? LdpError)?.code ?? "unexpected"
            install.teller.tell(name, id, reason, error)
            return .nothing(reason: reason)
        }
    }
    private func word(for step: NextStep) -> String {
        switch step {
        case .ask(_, let reason): reason ?? "ask"
        case .contribute: "contribute"
        case .nothing(let reason): reason
        }
    }
    private func step(_ until: Deadline) throws -> NextStep {
        let entry = try entry()
        if entry?.receipt != nil { return .nothing(reason: "answered") }
        if entry?.consent.isGiven == false { return .nothing(reason: "declined") }
        let (campaign, refusal) = (try fetch(until), try refusal(until))
        if let refusal, !agreeable.contains(refusal) { return .nothing(reason: refusal.rawValue) }
        try install.storage.check()
        if entry == nil { return .ask(campaign) }
        guard let refusal else { return .contribute }
        return refusal == .otherRecipient ? .ask(campaign, reason: refusal.rawValue) : .nothing(reason: refusal.rawValue)
    }
    /// Why this device would refuse the campaign, nil where it would answer: to know before anybody is asked.
    public func refusal(timeout: TimeInterval = 5) throws -> Refusal? { try inTime(timeout) { try self.refusal($0) } }
    private func refusal(_ until: Deadline) throws -> Refusal? {
        let (campaign, state) = (try fetch(until), try install.state())
        if state[id]?.receipt != nil { return nil }
        if state.enabled { standing.hear(keep: state[id]?.consent.isGiven == true, until) }
        return try signed?.refusal() ?? refused(state, campaign)
    }
    /// What this device would be asked and would say of a record of class `label`, and what is wrong with it: for an app's tests and debug
    /// builds. Nothing is drawn, stored or sent. Throws ``LdpError`` `not-fetched`.
    public func preview(_ record: Record, label: Any? = nil) throws -> Preview { Preview(try inHand(), record, label) }
    /// The campaign's promise in words for the person who is asked, and for a privacy policy. Throws ``LdpError`` `not-fetched`.
    public func explained() throws -> Explanation { LdpBayes.explained(try inHand(), url) }
    /// When this device answers, in a series; nil in any other campaign, and before anybody has decided. Throws what
    /// ``fetch(timeout:)`` throws.
    public func window() throws -> Range<Date>? { try install.state().window(fetch(timeout: 5)) }
    /// The person has agreed to this campaign, and to sending the answer to this address. Throws what ``fetch(timeout:)``
    /// throws, and ``LdpError/refused(_:)`` where ``refusal(timeout:)`` says so; nothing was then kept.
    public func grant(timeout: TimeInterval = 5) throws {
        try install.teller.step("grant", id) { try inTime(timeout) { try self.grant($0) } }
    }
    private func grant(_ until: Deadline) throws {
        let campaign = try fetch(until)
        if let refusal = try refusal(until), !agreeable.contains(refusal) { throw LdpError.refused(refusal) }
        try until.check()  // nothing is stored for who was told that it was too late
        try install.storage.change(stored) { _ in campaign.document }
        try signed?.keep()
        standing.keep()
        try install.change { state in
            var consent = Consent(url: url, title: campaign.title, purpose: campaign.purpose, epsilon: campaign.realisedEpsilon)
            consent.grantedAt = install.now()
            if let known = state[id]?.consent, known.isGiven, known.url == url { return }
            if state[id] == nil { state[id] = Entry(id: id, consent: consent) } else { state[id]?.consent = consent }
        }
    }
    /// The person no longer agrees, or never did: what is unsent is deleted, and nobody asks again. Where nothing had begun to leave,
    /// its loss is given back and the person may agree again. What has begun is waited for, a little.
    @discardableResult
    public func withdraw() throws -> Withdrawal { try install.teller.step("withdraw", id, withdrawn) }
    private func withdrawn() throws -> Withdrawal {
        let (deleted, refunded, hasBegun) = try install.change { state in
            var entry = state[id] ?? Entry(id: id, consent: Consent(url: url))
            let deleted = entry.queued.count
            let receipt = deleted > 0 ? entry.receipt : nil
            let hasBegun = receipt.map { $0.fate != .waiting } ?? false
            entry.consent.withdrawnAt = install.now()
            if hasBegun { entry.receipt?.fate = .deleted } else if deleted > 0 { entry.receipt = nil }
            entry.reports.removeAll { $0.at == nil }
            state[id] = entry
            return (deleted, hasBegun ? 0 : receipt?.epsilon ?? 0, hasBegun)
        }
        try install.landed()
        let mayArrive = try hasBegun && receipt()?.fate != .arrived
        return Withdrawal(deleted: deleted, onItsWay: mayArrive ? deleted : 0, refunded: refunded)
    }
    /// Whether the person agrees.
    public func consented() throws -> Bool { try entry()?.consent.isGiven ?? false }
    /// Answers the campaign, once: a second call returns the first receipt, whatever the record now says. The ledger's debit, the
    /// answer and its place in the queue are on disk before this returns and before anything is sent; the network is not used.
    /// Throws ``LdpError``, and nothing was then spent: `consent-missing`, `not-fetched`, `undeclared-label`, `no-randomness`, and what
    /// the storage throws.
    @discardableResult
    public func contribute(_ record: Record, label: Any? = nil) throws -> Contribution {
        try install.teller.step(
            "contribute", id, code: { if case .refused(let refusal) = $0 { refusal.rawValue } else { nil } },
            { try contributed(record, label) })
    }
    private func contributed(_ record: Record, _ label: Any?) throws -> Contribution {
        if let answered = try answered(try install.state()) { return answered }
        let campaign = try inHand()
        if let refusal = try signed?.refusal() { return .refused(refusal) }
        let made = try install.change { state in
            if let answered = try answered(state) { return answered }
            if let refusal = try refused(state, campaign) { return Contribution.refused(refusal) }
            return .answered(try answer(&state, campaign, record, label))
        }
        install.woken.signal()
        return made
    }
    /// What this device has contributed.
    public func receipt() throws -> Receipt? { try entry()?.receipt }
    /// What happened so far.
    public func status() throws -> Status {
        let entry = try entry()
        let queued = entry?.queued.count ?? 0
        let replies = Dictionary(grouping: (entry?.reports ?? []).compactMap(\.reply)) { $0 }.mapValues(\.count)
        return Status(
            consent: entry?.consent.isGiven, fate: entry?.receipt?.fate, queued: queued, sent: replies[Kept.arrived] ?? 0,
            retries: entry?.retries ?? 0, dropped: replies.filter { $0.key != Kept.arrived }, nextTry: queued > 0 ? entry?.due : nil,
            problem: entry?.problem)
    }
    /// The campaign's model: at once as it was kept, and the newest is fetched for the next call; else as it can be had. The request is the
    /// same bytes from every device; only once the person has agreed the model is stored. Throws ``LdpError``.
    public func classifier(timeout: TimeInterval = 5) throws -> Classifier {
        try install.teller.step("classifier", id) { try kept(timeout) }
    }
    private func kept(_ timeout: TimeInterval) throws -> Classifier {
        let kept = try? model.value ?? install.storage.read(storedModel)
        guard let kept, let classifier = try? Classifier(model: kept, of: label) else { return try inTime(timeout) { try self.newest($0) } }
        if isRenewing.change({ known in
            defer { known = true }
            return !known
        }) {
            Thread { [self] in
                _ = try? newest(Deadline(in: install.policy.requestTimeout))
                isRenewing.value = false
            }.start()
        }
        return classifier
    }
    /// The model as it stands now, kept for later calls: where it cannot be stored, as long as this lives.
    private func newest(_ until: Deadline) throws -> Classifier {
        let bytes = try install.network.get("\(path)/model", longest: Network.largestModel, until)
        try signed?.check(model: bytes, until)
        let classifier = try Classifier(model: bytes, of: label)
        model.value = bytes
        if (try? consented()) == true { try? install.storage.change(storedModel) { _ in bytes } }
        return classifier
    }
    private var storedModel: String { "model-\(id)" + (signed.map { "-\($0.digest)" } ?? "") }
    private var label: Label? { (try? atHand())??.label }
    private func answer(_ state: inout State, _ campaign: Campaign, _ record: Record, _ label: Any?) throws -> Receipt {
        let reports = try perturb(campaign, record, label: label, secret: try State.bytes(state.secret))
        let at = install.now()
        let (size, first) = (campaign.questions.count, reports[0].question)
        let receipt = Receipt(
            campaignId: id, title: campaign.title, study: campaign.study, epsilon: campaign.realisedEpsilon,
            questions: reports.map(\.question), at: at, url: url, window: campaign.authored.windows?.name(first / size))
        state[id]?.receipt = receipt
        state[id]?.reports = reports.map {
            let asked = campaign.asked(campaign.questions[$0.question % size])
            return Kept(id: hex($0.id), question: $0.question, asked: asked, payload: hex($0.payload))
        }
        let ends = try state.window(campaign)?.upperBound ?? campaign.closes
        state[id]?.expires = min(at + install.policy.reportAge, ends.map { $0 + closingGrace } ?? .distantFuture)
        state[id]?.uploadLength = campaign.uploadLength
        state[id]?.due = nil
        return receipt
    }
    /// An answer given before.
    private func answered(_ state: State) throws -> Contribution? {
        let isGiven = state[id]?.consent.isGiven ?? false
        try ensure(isGiven, "consent-missing", "nobody has agreed to this campaign; call grant() once they have")
        return state[id]?.receipt.map(Contribution.answered)
    }
    private func refused(_ state: State, _ campaign: Campaign) throws -> Refusal? {
        let (cap, now) = (install.maxTotalEpsilon, install.now())
        let own = try state.refusal(campaign, url, maxEpsilon: maxEpsilon, maxTotalEpsilon: cap, now: now)
        // Answering asks nobody: the time of a request would tell the time of the event.
        return own.map(agreeable.contains) == false ? own : standing.refusal ?? own
    }
    private func entry() throws -> Entry? { try install.state()[id] }
    private var path: String { "\(url)/v1/campaigns/\(id)" }
    private var stored: String { "campaign-\(id)" }
    private func atHand() throws -> Campaign? {
        if let known = known.value { return known }
        // Where what is stored is damaged, it is fetched again.
        let campaign = try install.document(id)
        if campaign != nil { known.value = campaign }
        return campaign
    }
    private func inHand() throws -> Campaign {
        try atHand() ?? raise(failure("not-fetched", "call fetch(), now or when the app starts"))
    }
}
