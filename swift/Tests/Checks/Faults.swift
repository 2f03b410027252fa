import Foundation

@testable import LdpBayes

private let url = "https://collect.example"
private let mostSeconds = 6.0

private func ok(_ body: String) -> Answer { Answer(status: 200, headers: [:], body: Data(body.utf8)) }

/// README's snippet with something wrong: it ends within six seconds, and nobody is asked in vain.
final class Faults {
    private let plain: Campaign, trained: Campaign, model: String
    private let folder: URL
    private var made = 0, hasAsked = false

    init(vectors: URL, folder: URL) throws {
        func accepted(_ file: String) throws -> [Json] {
            try Json(Data(contentsOf: vectors.appendingPathComponent("\(file).json")))["accepted"]!.entries!
        }
        let (documents, training) = (try accepted("documents"), try accepted("training")[0])
        func campaign(_ name: String) throws -> Campaign {
            try Campaign(document: document(documents.first { $0["name"]!.string == name }!["document"]))
        }
        (plain, trained) = (try campaign("de-onebit"), try campaign(training["document"]!.string))
        model = training["model"]!.string
        self.folder = folder
    }

    private func fresh() -> URL {
        made += 1
        return folder.appendingPathComponent("faulty \(made)")
    }

    /// Answers for the campaign with this document.
    private func serving(_ document: Data? = nil) -> FakeTransport {
        let document = document ?? plain.document
        return FakeTransport { request in
            if request.body != nil { return ok(#"{"rejected": []}"#) }
            if request.url.hasSuffix("/state") { return ok(#"{"state": "open"}"#) }
            return Answer(status: 200, headers: [:], body: document)
        }
    }

    private func agrees() -> Bool {
        hasAsked = true
        return true
    }

    /// The snippet; the next step at its end.
    private func run(
        _ storage: some Storage, _ transport: some Transport, id: String? = nil, publisher: Publisher? = nil, at url: String = url
    ) throws -> NextStep {
        hasAsked = false
        let begun = monotonic()
        let device = try Device(storage, maxTotalEpsilon: 4, transport: transport)
        let campaign = try device.campaign(url, id: id ?? plain.id, maxEpsilon: 2, publisher: publisher)
        var step = campaign.nextStep()
        if case .ask = step { step = campaign.decide(agrees()) }
        if case .contribute = step { _ = try campaign.contribute(["colour": "green"], label: "no") }
        device.start()
        try check(monotonic() - begun < mostSeconds, "it took longer")
        device.close()
        if case .nothing = step { return step }
        return campaign.nextStep()
    }

    private func fault(_ sentence: String, _ reason: String, asks: Bool = false, _ test: () throws -> NextStep) throws {
        let step = try test()
        guard case .nothing(reason) = step, hasAsked == asks else {
            throw Failed(description: "\(sentence): \(step), asked: \(hasAsked)")
        }
        print(sentence)
    }

    func all() throws {
        try fault("where nothing is wrong the person is asked, and answers once", "answered", asks: true) { try run(Texts(), serving()) }
        try storages()
        try networks()
        try documents()
        try times()
        try models()
        try Embedding(document: plain.document).all()
    }

    private func storages() throws {
        func stored(_ text: String) -> String { base64url(sha256(text.utf8)) + text }
        let newer = stored(#"{"version":3,"enabled":true,"campaigns":{}}"#)
        for (name, text, code) in [
            ("damaged", "x", "storage-corrupt"), ("empty", "", "storage-corrupt"),
            ("of an unknown kind", stored(#"{"of":"another"}"#), "storage-corrupt"), ("newer", newer, "storage-newer"),
        ] {
            let place = fresh()
            let device = try Device(FileStorage(folder: place), maxTotalEpsilon: 4, transport: serving())
            guard case .contribute = try device.campaign(url, id: plain.id, maxEpsilon: 2).decide(true) else {
                throw Failed(description: "not agreed")
            }
            try Data(text.utf8).write(to: place.appendingPathComponent("device"))
            try fault("a storage that is \(name)", code) { try run(FileStorage(folder: place), serving()) }
            try device.erase()
            try fault("a storage that was \(name) and is erased", "answered", asks: true) { try run(FileStorage(folder: place), serving()) }
        }
        let texts = Texts()
        try Device(texts, maxTotalEpsilon: 4, transport: serving()).campaign(url, id: plain.id, maxEpsilon: 2).decide(true)
        let body = String(decoding: texts.kept.value["device"]!.dropFirst(43), as: UTF8.self)
        let older = body.replacingOccurrences(of: #","version":2"#, with: "")
        try check(body != older, body)
        texts.kept.value["device"] = Data(stored(older).utf8)
        try fault("a storage from before it had a version", "answered") { try run(texts, serving()) }
        let way = fresh()
        try Data().write(to: way)
        try fault("a file where the folder should be", "storage-unavailable") {
            try run(FileStorage(folder: way.appendingPathComponent("ldp")), serving())
        }
        try fault("a full storage", "storage-full") { try run(Texts(checking: failure("storage-full")), serving()) }
        try fault("a storage that throws what it likes", "unexpected") { try run(Texts(checking: URLError(.unknown)), serving()) }
    }

    private func networks() throws {
        try fault("a network that is refused", "unreachable") {
            try run(Texts(), FakeTransport { _ in throw URLError(.cannotConnectToHost) })
        }
        try fault("a server in trouble", "http-500") {
            try run(Texts(), FakeTransport { _ in Answer(status: 500, headers: [:], body: Data()) })
        }
        try fault("a server that says something else", "wrong-hash") { try run(Texts(), FakeTransport { _ in ok("<html>") }) }
        try fault("a transport that does not return", "timeout") { try run(Texts(), silence) }
        let silent = socket(AF_INET, Faults.stream, 0)
        defer { close(silent) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port: UInt16 = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(silent, $0, length)
                listen(silent, 8)
                getsockname(silent, $0, &length)
            }
            return UInt16(bigEndian: pointer.pointee.sin_port)
        }
        try fault("a server that is silent", "timeout") { try run(Texts(), URLSessionTransport(), at: "http://127.0.0.1:\(port)") }
    }

    #if canImport(Darwin)
    private static let stream = SOCK_STREAM
    #else
    private static let stream = Int32(SOCK_STREAM.rawValue)
    #endif
    private let silence = FakeTransport { _ in
        Thread.sleep(forTimeInterval: 60)
        throw URLError(.timedOut)
    }

    private func documents() throws {
        let text = String(decoding: plain.document, as: UTF8.self)
        let version = try text.range(of: #""version": ?1"#, options: .regularExpression) ?? { throw Failed(description: text) }()
        for (name, change, code) in [
            ("newer", #""version":99"#, invalidDocument),
            ("of a campaign with an issuer", #""issuer":{"name":"issuer.example","key":"AA"},"version":1"#, "issuer-unsupported"),
            ("of a campaign with a gateway", #""gateway":{"key":"AA"},"version":1"#, "no-relay"),
        ] {
            let other = text.replacingCharacters(in: version, with: change)
            try fault("a document that is \(name)", code) {
                try run(Texts(), serving(Data(other.utf8)), id: base64url(sha256(other.utf8)))
            }
        }
        let privacy = try text.range(of: #""privacy": ?\{"#, options: .regularExpression) ?? { throw Failed(description: text) }()
        let mixed = text.replacingCharacters(in: privacy, with: #""privacy":{"crowd":{"epsilon":1},"#)
        try fault("a document that is of a campaign with a crowd", "crowd-unsupported") {
            try run(Texts(), serving(Data(mixed.utf8)), id: base64url(sha256(mixed.utf8)))
        }
        let publisher = try Publisher(String(repeating: "A", count: 43))
        try fault("a publisher that has signed nothing", "malformed-directory") { try run(Texts(), serving(), publisher: publisher) }
        #if !canImport(CryptoKit)
        let directory = #"{"statement": "{}", "signature": "\#(String(repeating: "A", count: 86))"}"#
        try fault("a platform that checks no signatures", "no-signatures") {
            try run(Texts(), serving(Data(directory.utf8)), publisher: publisher)
        }
        #endif
    }

    private func times() throws {
        let (texts, serving) = (Texts(), serving())
        let late = FakeTransport { request in
            Thread.sleep(forTimeInterval: 0.06)
            return try serving.send(request)
        }
        try fault("a yes that came too late is kept nowhere", "timeout") {
            hasAsked = false
            let campaign = try Device(texts, maxTotalEpsilon: 4, transport: late).campaign(url, id: plain.id, maxEpsilon: 2)
            let step = campaign.decide(true, timeout: 0.02)
            Thread.sleep(forTimeInterval: 0.3)
            return step
        }
        try equal(texts.kept.value, [:])
        let campaign = try Device(Texts(), maxTotalEpsilon: 4, transport: silence).campaign(url, id: plain.id, maxEpsilon: 2)
        let calls: [() throws -> Void] = [
            { try campaign.fetch(timeout: 0.02) }, { _ = try campaign.refusal(timeout: 0.02) }, { try campaign.grant(timeout: 0.02) },
            { _ = try campaign.classifier(timeout: 0.02) },
        ]
        for call in calls { try refuses("timeout", call) }
    }

    private func models() throws {
        let prior = try model.range(of: #""prior": ?\[[^\]]*\]"#, options: .regularExpression) ?? { throw Failed(description: model) }()
        let numbers = model[prior].split(separator: "[")[1].dropLast().split(separator: ",")
        let newer = model.replacingCharacters(in: prior, with: "\"prior\":[\(numbers.reversed().joined(separator: ","))]")
        let (texts, served) = (Texts(), Guarded(model))
        let serving = serving(trained.document)
        let transport = FakeTransport { request in
            request.url.hasSuffix("/model") ? ok(served.value) : try serving.send(request)
        }
        func campaign(_ storage: Texts, _ transport: FakeTransport) throws -> DeviceCampaign {
            try Device(storage, maxTotalEpsilon: 9, transport: transport).campaign(url, id: trained.id, maxEpsilon: 9)
        }
        let first = try campaign(texts, transport)
        try first.grant()
        let before = try first.classifier().scores([:])
        try equal(try campaign(texts, silence).classifier(timeout: 0.02).scores([:]), before)
        served.value = newer
        let part = try campaign(Texts(texts.kept.value, isFull: true), transport)
        var tries = 0
        while try part.classifier().scores([:]) == before {
            tries += 1
            try check(tries < 500, "the newest model was not used")
            Thread.sleep(forTimeInterval: 0.01)
        }
        try check(tries > 0, "the stored model was not used at once")
        print("a model is used at once as it was kept, and the newest at the next call")
    }
}

/// A storage in memory that may have no room.
private final class Texts: Storage, @unchecked Sendable {
    let kept: Guarded<[String: Data]>
    private let problem: (any Error)?, isFull: Bool
    init(_ kept: [String: Data] = [:], checking problem: (any Error)? = nil, isFull: Bool = false) {
        (self.kept, self.problem, self.isFull) = (Guarded(kept), problem, isFull)
    }
    func read(_ name: String) throws -> Data? { kept.value[name] }
    func change(_ name: String, _ change: (Data?) throws -> Data?) throws {
        if isFull { throw failure("storage-full") }
        try kept.change { $0[name] = try change($0[name]) }
    }
    func check() throws { if let problem { throw problem } }
    func clear() throws { kept.value = [:] }
    func exclusive<T>(wait: TimeInterval, _ work: () throws -> T) throws -> T? { try work() }
}
