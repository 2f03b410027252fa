import Foundation

/// One install of an app. Making one touches neither network nor storage; nothing is written before somebody decides. Every call
/// blocks, and may be made from any thread but an app's main one, which awaits those that are `async`, too.
public final class Device: Sendable {
    private let install: Install
    private let thread = Guarded<Thread?>(nil)
    /// A device on a storage. `maxTotalEpsilon` is a hard cap on the privacy loss over all campaigns, `now` a clock; `log` is told each
    /// step and each failure with its cause. Throws ``LdpError`` `bad-cap`.
    public init(
        _ storage: some Storage, maxTotalEpsilon: Double, policy: Policy = Policy(), transport: some Transport = URLSessionTransport(),
        log: (@Sendable (Step) -> Void)? = nil, now: @escaping @Sendable () -> Date = { Date() }
    ) throws {
        try Device.check(cap: maxTotalEpsilon)
        let teller = Teller(log: log, now: now)
        let network = Network(transport: transport, policy: policy, teller: teller)
        install = Install(
            storage: storage, maxTotalEpsilon: maxTotalEpsilon, network: network, policy: policy, teller: teller, clock: now)
    }
    /// A device on a folder of its own; see ``FileStorage`` for where that belongs.
    public convenience init(folder: URL, maxTotalEpsilon: Double) throws {
        try self.init(FileStorage(folder: folder), maxTotalEpsilon: maxTotalEpsilon)
    }
    deinit { close() }
    /// A campaign, as this device sees it; touches neither network nor storage. `publisher` has to have signed campaign and model;
    /// without one the aggregator is believed. Throws ``LdpError`` `bad-url`, `bad-cap` or `bad-campaign-id`.
    public func campaign(_ url: String, id: String, maxEpsilon: Double, publisher: Publisher? = nil) throws -> DeviceCampaign {
        try ensure(isCampaignId(id), "bad-campaign-id")
        try Device.check(cap: maxEpsilon)
        return DeviceCampaign(install, url: try install.network.checked(url), id: id, maxEpsilon: maxEpsilon, publisher)
    }
    /// What was spent in all campaigns; its description is for the person.
    public func ledger() throws -> Ledger { Ledger(receipts: try install.state().receipts, maxTotalEpsilon: install.maxTotalEpsilon) }
    /// Every report whose upload began, whatever the server said of it.
    public func sent() throws -> [SentReport] {
        try install.state().campaigns.flatMap { entry -> [SentReport] in
            let left = entry.reports.filter { $0.at != nil }
            let campaign = left.isEmpty ? nil : try install.document(entry.id)
            return try left.map { kept in
                let question = campaign.map { $0.questions[kept.question % $0.questions.count] }
                let (asked, said) =
                    try question.map { (campaign!.asked($0), campaign!.said($0, try State.bytes(kept.payload))) } ?? (
                        kept.asked, kept.payload
                    )
                return SentReport(
                    campaignId: entry.id, title: entry.consent.title, url: entry.consent.url, asked: asked, said: said, id: kept.id,
                    payload: kept.payload, at: kept.at!, reply: kept.reply)
            }
        }
    }
    /// The person's switch. Off, nothing is answered and nothing is sent; what is queued waits.
    public func isEnabled() throws -> Bool { try install.state().enabled }
    /// Turns the person's switch, for good.
    public func enable(_ isEnabled: Bool) throws {
        try install.change { $0.enabled = isEnabled }
        install.woken.signal()
    }
    /// A copy of everything that is kept about the person, except the secret, as JSON.
    public func export() throws -> Data {
        var state = try install.state()
        state.secret = nil
        return try state.json()
    }
    /// Deletes everything in the storage. What follows is a new device; what was sent stays sent: an answer that was counted is a number
    /// in a sum, and nobody can take it out. How long a server keeps what it could be found by is with the operator
    /// (``Campaign/keepDays``, where it promises that).
    public func erase() throws {
        try install.storage.clear()
        try install.landed()
    }
    /// Delivers what is due within `timeout`; true when nothing is left to send. For hosts with a schedule of their own, such as
    /// `BGTaskScheduler`. Never throws.
    public func runOnce(timeout: TimeInterval = 10, firstDelay: TimeInterval = 0) -> Bool {
        let until = monotonic() + timeout
        while true {
            let left = max(0, until - monotonic())
            guard let wait = try? install.told(wait: left, firstDelay: firstDelay) ?? -1 else { return false }
            if wait < 0 || wait > left { return wait < 0 }
            Thread.sleep(forTimeInterval: wait)
        }
    }
    /// Delivers in the background until ``close()``, or until the device is gone.
    public func start(firstDelay: TimeInterval? = nil) {
        let (install, delay) = (install, firstDelay ?? install.policy.firstDelay)
        let made = Thread {
            while !Thread.current.isCancelled {
                // A storage that fails is left alone for a while.
                let wait = (try? install.told(wait: install.policy.requestTimeout, firstDelay: delay)) ?? idleCheck
                _ = install.woken.wait(timeout: .now() + min(wait, idleCheck))
            }
        }
        (made.name, made.qualityOfService) = ("ldp-bayes", .utility)
        thread.change {
            if $0 == nil { made.start() }
            $0 = $0 ?? made
        }
    }
    /// Stops the background delivery; unsent reports stay queued.
    public func close() {
        thread.value?.cancel()
        thread.value = nil
        install.woken.signal()
    }
    private static func check(cap: Double) throws { try ensure(cap > 0 && cap.isFinite, "bad-cap") }
}

/// A value that threads change one after the other, which the compiler cannot see.
final class Guarded<Value>: @unchecked Sendable {
    private let lock = NSLock()
    private var guarded: Value
    init(_ value: Value) { guarded = value }
    var value: Value {
        get { change { $0 } }
        set { change { $0 = newValue } }
    }
    func change<T>(_ change: (inout Value) throws -> T) rethrows -> T {
        lock.lock()
        defer { lock.unlock() }
        return try change(&guarded)
    }
}

/// Seconds on a clock that nobody sets.
func monotonic() -> TimeInterval { TimeInterval(DispatchTime.now().uptimeNanoseconds) / 1e9 }

/// What the campaigns of a device share: its storage, its state in it, and one sender for all of them.
struct Install {
    let storage: any Storage, maxTotalEpsilon: Double, network: Network, policy: Policy, teller: Teller, clock: @Sendable () -> Date
    /// Told of whatever there may be to send.
    let woken = DispatchSemaphore(value: 0)
    private static let device = "device"
    /// To the millisecond, as it is stored.
    func now() -> Date { Date(milliseconds: clock().milliseconds) }
    func state() throws -> State { try State(stored: try storage.read(Install.device)) }
    /// The document that is stored beside a consent; nil where there is none that can be read.
    func document(_ id: String) throws -> Campaign? {
        try storage.read("campaign-\(id)").flatMap { try? Campaign(document: $0, id: id) }
    }
    /// Whether somebody has decided anything yet.
    func exists() throws -> Bool { try storage.read(Install.device) != nil }
    /// Changes the state in one transaction.
    func change<T>(_ change: (inout State) throws -> T) throws -> T {
        var result: T?
        try storage.change(Install.device) { before in
            let known = try State(stored: before)
            var state = known
            if state.secret == nil { state.secret = hex(try makeSecret()) }
            result = try change(&state)
            return state == known ? before : try state.stored()
        }
        return result!
    }
    /// Waits for an upload under way, in whichever process, two seconds at most.
    func landed() throws { if try exists() { _ = try storage.exclusive(wait: landingTimeout) {} } }
    /// One step of the delivery, told of where it fails.
    func told(wait: TimeInterval, firstDelay: TimeInterval) throws -> TimeInterval? {
        do { return try step(wait: wait, firstDelay: firstDelay) } catch {
            teller.tell("delivery", "", code(of: error), error)
            throw error
        }
    }
    /// One step of the delivery: how long it is until the next one, nil where nothing waits.
    func step(wait: TimeInterval, firstDelay: TimeInterval) throws -> TimeInterval? {
        guard try exists() else { return nil }
        if let next = try storage.exclusive(wait: wait, { try send(firstDelay) }) ?? nil { return next }
        // Another process sends, or contributed meanwhile.
        var state = try state()
        if case .nothing = state.plan(now: now(), firstDelay: 0, policy, jitter: { 0 }) { return nil }
        return policy.backoffBase
    }
    private func send(_ firstDelay: TimeInterval) throws -> TimeInterval? {
        switch try change({ try $0.plan(now: now(), firstDelay: firstDelay, policy, jitter: jitter) }) {
        case .nothing: return nil
        case .wait(let wait): return wait
        case .send(let batch):
            let answer = network.upload("\(batch.url)/v1/campaigns/\(batch.campaignId)/reports", try batch.body())
            if try exists() { try change { $0.note(answer, to: batch, now: now(), policy, jitter: try jitter()) } }
            return 0
        }
    }
    /// From [0, 1).
    private func jitter() throws -> Double { try randomBytes(4).reduce(0) { ($0 + Double($1)) / 256 } }
}
