import Foundation
import LdpBayes

/// An aggregator in memory: its documents and models by id, and every upload that came. It is a device's transport, and is set up
/// before a device asks it.
public final class FakeAggregator: Transport, @unchecked Sendable {
    public var documents: [String: Data] = [:], models: [String: Data] = [:]
    /// How campaigns stand, by id: `not-yet`, `closing`, `closed`, `full` or `deleted`; any other is `open`.
    public var states: [String: String] = [:]
    /// Signed directories by the publisher's key.
    public var directories: [String: Data] = [:]
    /// Called first with every request; what it returns is the answer, and what it throws is a network that fails.
    public var intercept: @Sendable (Request) throws -> Answer? = { _ in nil }
    /// Loses the answers to this many uploads that did arrive.
    public var loseAnswers = 0
    private var received: [Data] = []
    private let lock = NSLock()
    public init() {}
    /// Bodies of uploads, in the order of arrival.
    public var uploads: [Data] {
        lock.lock()
        defer { lock.unlock() }
        return received
    }
    /// Serves the campaign of a document, such as one that `ldp-aggregator campaign create` printed.
    @discardableResult
    public func publish(_ document: Data) throws -> Campaign {
        let campaign = try Campaign(document: document)
        documents[campaign.id] = document
        return campaign
    }
    public func send(_ request: Request) throws -> Answer {
        if let answer = try intercept(request) { return answer }
        let path = request.url.components(separatedBy: "/").dropFirst(3)
        guard path.count >= 3, path.starts(with: ["v1", "directories"]) || path.starts(with: ["v1", "campaigns"]) else {
            return FakeAggregator.problem(404, "not-found")
        }
        let (kind, id, rest) = (path[path.startIndex + 1], path[path.startIndex + 2], path.dropFirst(3).joined(separator: "/"))
        if kind == "directories" { return answer(directories[id], "no-directory") }
        guard let document = documents[id] else { return FakeAggregator.problem(404, "unknown-campaign") }
        if let body = request.body { return try take(body) }
        switch rest {
        case "": return answer(document)
        case "state": return answer(Data(#"{"state": "\#(states[id] ?? "open")"}"#.utf8))
        case "model": return answer(models[id], "no-model")
        default: return FakeAggregator.problem(404, "not-found")
        }
    }
    private func take(_ body: Data) throws -> Answer {
        lock.lock()
        defer { lock.unlock() }
        received.append(body)
        loseAnswers -= 1
        if loseAnswers >= 0 { throw URLError(.networkConnectionLost) }
        return answer(Data(#"{"rejected": []}"#.utf8))
    }
    private func answer(_ body: Data?, _ otherwise: String = "not-found") -> Answer {
        body.map { Answer(status: 200, headers: [:], body: $0) } ?? FakeAggregator.problem(404, otherwise)
    }
    /// A problem document (RFC 9457) as an answer.
    public static func problem(_ status: Int, _ code: String, headers: [String: String] = [:]) -> Answer {
        let body = Data(#"{"status": \#(status), "code": "\#(code)"}"#.utf8)
        return Answer(status: status, headers: headers.merging(["content-type": "application/problem+json"]) { own, _ in own }, body: body)
    }
}
