import Foundation

// For an app's main thread, which no call may block.

/// Does what blocks on a background queue, and calls back on the main one.
///
///     inBackground(then: show) { try campaign.nextStep() }
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
    /// What an app has to do now, without blocking.
    public func nextStep() async throws -> NextStep { try await awaited { try self.nextStep() } }
    /// The person has agreed; without blocking.
    public func grant() async throws { try await awaited { try self.grant() } }
    /// The person no longer agrees, or never did; without blocking.
    @discardableResult
    public func withdraw() async throws -> Withdrawal { try await awaited { try self.withdraw() } }
    /// Answers the campaign, once, without blocking.
    public func contribute(_ record: Record, label: String) async throws -> Contribution {
        try await awaited { try self.contribute(record, label: label) }
    }
    /// The campaign's model, without blocking.
    public func classifier() async throws -> Classifier { try await awaited { try self.classifier() } }
}

extension Device {
    /// Delivers what is due within `timeout`, without blocking.
    public func runOnce(timeout: TimeInterval = 10, firstDelay: TimeInterval = 0) async -> Bool {
        await withCheckedContinuation { continuation in
            inBackground(on: .global(qos: .utility), then: { continuation.resume(returning: (try? $0.get()) ?? false) }) {
                self.runOnce(timeout: timeout, firstDelay: firstDelay)
            }
        }
    }
}
