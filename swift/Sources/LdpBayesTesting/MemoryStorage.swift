import Foundation
import LdpBayes

/// A storage that lives as long as it is held.
public final class MemoryStorage: Storage, @unchecked Sendable {
    private var texts: [String: Data] = [:]
    private let lock = NSRecursiveLock(), sending = NSRecursiveLock()
    public init() {}
    public func read(_ name: String) -> Data? { locked(lock) { texts[name] } }
    public func change(_ name: String, _ change: (Data?) throws -> Data?) throws {
        try locked(lock) { texts[name] = try change(texts[name]) }
    }
    public func clear() { locked(lock) { texts = [:] } }
    public func exclusive<T>(wait _: TimeInterval, _ work: () throws -> T) throws -> T? { try locked(sending, work) }
    private func locked<T>(_ lock: NSRecursiveLock, _ work: () throws -> T) rethrows -> T {
        lock.lock()
        defer { lock.unlock() }
        return try work()
    }
}
