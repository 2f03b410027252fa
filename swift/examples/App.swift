// An app's side of it, which `make swift` compiles in the language modes 5 and 6: on the main actor, and nothing there blocks.
import Foundation
import LdpBayes

@MainActor
final class Survey {
    private let device: Device, campaign: DeviceCampaign
    init(folder: URL, url: String, id: String) throws {
        device = try Device(folder: folder, maxTotalEpsilon: 4)
        campaign = try device.campaign(url, id: id, maxEpsilon: 2)
    }
    /// At every start; `agrees` shows the person title, purpose and `realisedEpsilon`, and returns what they said.
    func begin(agrees: (Campaign) async -> Bool) async throws {
        var step = await campaign.nextStep()
        if case .ask(let document, _) = step { step = await campaign.decide(agrees(document)) }
        if case .contribute = step { try await campaign.contribute(["age": "young", "words": 41_000], label: "no") }
        device.start()
    }
    /// The person's own log, and their way out.
    func told() throws -> String { try device.ledger().description }
    func leave() async throws -> Withdrawal { try await campaign.withdraw() }
    /// In the time that the system gives an app in the background.
    func deliver() async -> Bool { await device.runOnce(timeout: 20) }
    func guess() async throws -> String { try await campaign.classifier().predict(["age": "old"]) }
}

/// Other actors, and tasks, share a device.
actor Delivery {
    private let device: Device
    init(_ device: Device) { self.device = device }
    func deliver() -> Task<Bool, Never> { Task.detached { [device] in await device.runOnce() } }
}
