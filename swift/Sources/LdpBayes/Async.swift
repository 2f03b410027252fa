import Foundation

/// What blocks, on a thread that may be blocked; those that run what is `async` may not.
private func awaited<T: Sendable>(_ work: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
        DispatchQueue.global(qos: .utility).async { continuation.resume(with: Result(catching: work)) }
    }
}

extension DeviceCampaign {
    /// Without blocking.
    public func nextStep(timeout: TimeInterval = 5) async -> NextStep { await step { self.nextStep(timeout: timeout) } }
    /// Without blocking.
    @discardableResult
    public func decide(_ agreed: Bool, timeout: TimeInterval = 5) async -> NextStep { await step { self.decide(agreed, timeout: timeout) } }
    private func step(_ work: @escaping @Sendable () -> NextStep) async -> NextStep {
        (try? await awaited(work)) ?? .nothing(reason: "unexpected")
    }
    /// Without blocking.
    public func fetch(timeout: TimeInterval = 5) async throws -> Campaign { try await awaited { try self.fetch(timeout: timeout) } }
    /// Without blocking.
    public func grant(timeout: TimeInterval = 5) async throws { try await awaited { try self.grant(timeout: timeout) } }
    /// Without blocking.
    @discardableResult
    public func withdraw() async throws -> Withdrawal { try await awaited { try self.withdraw() } }
    /// Without blocking.
    public func classifier(timeout: TimeInterval = 5) async throws -> Classifier {
        try await awaited { try self.classifier(timeout: timeout) }
    }
    /// Without blocking.
    @discardableResult
    public func contribute(_ record: Record, label: String? = nil) async throws -> Contribution {
        try await awaited { try self.contribute(record, label: label) }
    }
}

extension Device {
    /// Without blocking.
    public func runOnce(timeout: TimeInterval = 10, firstDelay: TimeInterval = 0) async -> Bool {
        (try? await awaited { self.runOnce(timeout: timeout, firstDelay: firstDelay) }) ?? false
    }
}
