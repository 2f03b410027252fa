import Foundation

/// Does what blocks on a background queue, and calls back on the main one, which no call may block.
public func inBackground<T>(
    on queue: DispatchQueue = .main, then tell: @escaping (Result<T, any Error>) -> Void, _ work: @escaping () throws -> T
) {
    DispatchQueue.global(qos: .utility).async {
        let result = Result(catching: work)
        queue.async { tell(result) }
    }
}
private func awaited<T>(_ work: @escaping () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
        inBackground(on: .global(qos: .utility), then: { continuation.resume(with: $0) }, work)
    }
}

extension DeviceCampaign {
    /// Without blocking.
    public func nextStep(timeout: TimeInterval = 5) async -> NextStep { await step { self.nextStep(timeout: timeout) } }
    /// Without blocking.
    @discardableResult
    public func decide(_ agreed: Bool, timeout: TimeInterval = 5) async -> NextStep { await step { self.decide(agreed, timeout: timeout) } }
    private func step(_ work: @escaping () -> NextStep) async -> NextStep { (try? await awaited(work)) ?? .nothing(reason: "unexpected") }
    /// Without blocking.
    public func fetch(timeout: TimeInterval = 5) async throws -> Campaign { try await awaited { try self.fetch(timeout: timeout) } }
    /// Without blocking.
    public func grant(timeout: TimeInterval = 5) async throws { try await awaited { try self.grant(timeout: timeout) } }
    /// Without blocking.
    public func withdraw() async throws -> Withdrawal { try await awaited { try self.withdraw() } }
    /// Without blocking.
    public func classifier(timeout: TimeInterval = 5) async throws -> Classifier {
        try await awaited { try self.classifier(timeout: timeout) }
    }
    /// Without blocking.
    public func contribute(_ record: Record, label: String) async throws -> Contribution {
        try await awaited { try self.contribute(record, label: label) }
    }
}

extension Device {
    /// Without blocking.
    public func runOnce(timeout: TimeInterval = 10, firstDelay: TimeInterval = 0) async -> Bool {
        (try? await awaited { self.runOnce(timeout: timeout, firstDelay: firstDelay) }) ?? false
    }
}
