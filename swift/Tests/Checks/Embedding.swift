import Foundation
import LdpBayesTesting

@testable import LdpBayes

/// The client within an app: against a developer's machine, with the testing kit.
struct Embedding {
    let document: Data
    private func campaign(_ aggregator: FakeAggregator, _ policy: Policy, at url: String = "https://collect.example") throws -> (
        Device, DeviceCampaign
    ) {
        let device = try Device(MemoryStorage(), maxTotalEpsilon: 9, policy: policy, transport: aggregator)
        return (device, try device.campaign(url, id: Campaign(document: document).id, maxEpsilon: 9))
    }

    func all() throws {
        try developersMachine()
        try kit()
        try log()
    }

    private func developersMachine() throws {
        let near = "10.0.2.2:8080 10.1.2.3 192.168.1.7 172.16.0.1 172.31.255.1 studio.local:8080 localhost:1 127.0.0.1"
        let names = "collect.example.org 10.0.2.2.example local a.local.example 10.0.2.2@a.example"
        let far = "\(names) 11.0.2.2 172.32.0.1 172.15.0.1 192.169.1.1 8.8.8.8 10.0.2"
        func taken(_ hosts: String, allowed: Bool) throws -> [String] {
            var policy = Policy()
            policy.allowPlainHttp = allowed
            return try hosts.split(separator: " ").map(String.init).filter { host in
                do {
                    _ = try campaign(FakeAggregator(), policy, at: "http://\(host)")
                    return true
                } catch let error as LdpError {
                    try equal(error.code, "bad-url")
                    return false
                }
            }
        }
        try equal(taken(near, allowed: true).joined(separator: " "), near)
        try equal(taken(far, allowed: true), [])
        try equal(taken(near, allowed: false), ["localhost:1", "127.0.0.1"])
        print("plain HTTP goes to a developer's machine alone, and only where a debug build says so")
    }

    private func kit() throws {
        let aggregator = FakeAggregator()
        var policy = Policy()
        policy.backoffBase = 0.001
        let id = try aggregator.publish(document).id
        let first = try campaign(aggregator, policy).1
        aggregator.intercept = { _ in FakeAggregator.problem(503, "busy") }
        guard case .nothing("busy") = first.nextStep() else { throw Failed(description: "a server that is busy") }
        aggregator.intercept = { _ in nil }
        aggregator.states[id] = "full"
        guard case .nothing("campaign-full") = first.nextStep() else { throw Failed(description: "a campaign that is full") }
        aggregator.states = [:]
        let (device, open) = try campaign(aggregator, policy)
        guard case .contribute = open.decide(true) else { throw Failed(description: "a campaign that is open") }
        try open.contribute(["colour": "green"], label: "no")
        aggregator.loseAnswers = 1
        try equal(device.runOnce(), true)
        try equal(aggregator.uploads.count, 2)
        try equal(aggregator.uploads[0], aggregator.uploads[1])
        print("an app's own tests have a storage and an aggregator in memory")
    }

    /// What is told of a whole life, and of a network that fails in many ways.
    private func log() throws {
        let (told, now) = (Guarded<[Step]>([]), Date(timeIntervalSince1970: 1_800_000_000))
        let aggregator = FakeAggregator()
        let id = try aggregator.publish(document).id
        let take: @Sendable (Step) -> Void = { step in told.change { $0.append(step) } }
        let device = try Device(MemoryStorage(), maxTotalEpsilon: 9, transport: aggregator, log: take, now: { now })
        let campaign = try device.campaign("https://collect.example", id: id, maxEpsilon: 9)
        campaign.decide(true)
        try campaign.contribute(["colour": "green"], label: "no")
        try equal(device.runOnce(), true)
        let steps: [[String?]] = [
            ["document", nil, nil], ["state", nil, nil], ["decide", "contribute", nil], ["contribute", nil, nil], ["upload", nil, nil],
        ]
        try equal(told.value.map { [$0.name, $0.code, $0.cause] }, steps)
        try check(told.value.allSatisfy { $0.time == now && $0.campaignId == id }, "\(told.value)")
        let kept = try device.sent()[0]
        let texts = told.value.map(\.description).joined()
        for secret in [kept.id, kept.payload, "green"] { try check(!texts.contains(secret), texts) }
        struct Own: Error { let value = "42 green" }
        let failures: [(any Error, String, String)] = [
            (URLError(.cannotFindHost), "unreachable", "dns"), (URLError(.timedOut), "timeout", "timeout"),
            (URLError(.cannotConnectToHost), "unreachable", "refused"), (URLError(.networkConnectionLost), "unreachable", "reset"),
            (URLError(.serverCertificateUntrusted), "unreachable", "tls"), (URLError(.unknown), "unreachable", "network"),
            (Own(), "unexpected", "Own"),
        ]
        var policy = Policy()
        policy.backoffBase = 0.001
        for (error, code, cause) in failures {
            told.value = []
            let failing = FakeTransport { _ in throw error }
            let away = try Device(MemoryStorage(), maxTotalEpsilon: 9, policy: policy, transport: failing, log: take)
            _ = try away.campaign("https://collect.example", id: id, maxEpsilon: 9).nextStep()
            try equal(told.value.first.map { [$0.name, $0.code, $0.cause] }, ["document", code, cause])
        }
        print("a log is told each step and each failure with its cause, and nothing of a person")
    }
}
