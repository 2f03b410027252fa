import Foundation

#if canImport(CryptoKit)
import CryptoKit
#endif

private let prefix = "ldp-bayes directory 1\n"  // of what is signed
private let (largestDirectory, mostCampaigns, keyBytes, signatureBytes) = (1 << 16, 256, 32, 64)

/// Who has to have signed a campaign and its model: the holder of one of these public keys.
public struct Publisher: Sendable {
    let keys: [String]
    /// `keys` have 43 characters each; an app may pin the next one beside the one in use. Throws ``LdpError`` `bad-publisher`.
    public init(_ keys: String...) throws {
        try ensure(!keys.isEmpty && keys.allSatisfy { unbase64url($0)?.count == keyBytes }, "bad-publisher")
        self.keys = keys
    }
}

/// Whether a key has signed a message. Throws ``LdpError`` `no-signatures` where that cannot be told.
typealias SignatureCheck = (_ key: [UInt8], _ message: [UInt8], _ signature: [UInt8]) throws -> Bool
/// The platform's Ed25519 (RFC 8032).
func isSigned(by key: [UInt8], _ message: [UInt8], _ signature: [UInt8]) throws -> Bool {
    #if canImport(CryptoKit)
    guard let key = try? Curve25519.Signing.PublicKey(rawRepresentation: key) else { return false }
    return key.isValidSignature(Data(signature), for: Data(message))
    #else
    throw failure("no-signatures", "this platform has no Ed25519, and what cannot be checked is not believed")
    #endif
}

/// What a publisher signs: which campaigns are open, with the SHA-256 (hexadecimal) of each one's model where there is one yet.
struct Directory {
    let document: Data, statement: ExactText, version: Int, expires: Date, campaigns: [String: String?]
    private static let malformed = "malformed-directory"
    /// It holds a day longer than it says, for clocks that are slow.
    func holds(_ now: Date) -> Bool { expires > now - clockTolerance }
    /// The statement of a document that the holder of `key` signed; what it holds is not looked at before the signature is. Throws
    /// ``LdpError`` `malformed-directory`, `wrong-signature` or `no-signatures`.
    init(_ document: Data, key: String, isSigned: SignatureCheck = isSigned) throws {
        try ensure(document.count <= largestDirectory, Directory.malformed)
        let texts = try refused(as: Directory.malformed) {
            try Fields.read(try Json(document), "") { fields in [fields.raw("statement")?.text, fields.raw("signature")?.text] }
        }
        guard let said = texts[0], said.string != nil, let signature = texts[1] else { throw failure(Directory.malformed) }
        let signed = signature.string.flatMap(unbase64url) ?? []
        let isRight = try signed.count == signatureBytes && isSigned(unbase64url(key) ?? [], Array(prefix.utf8) + said.utf8, signed)
        try ensure(isRight, "wrong-signature")
        (self.document, statement) = (document, said)
        (version, expires, campaigns) = try refused(as: Directory.malformed) {
            try Fields.read(try Json(said.utf8), "") { fields in
                let named = try fields.list("campaigns", 0...mostCampaigns).enumerated().map { at, value in
                    try Fields.read(value, fields.place("campaigns[\(at)]")) { (try $0.name("id"), try $0.optionalName("model")) }
                }
                let (version, expires) = (try fields.whole("version", 1...1 << 53 - 1), try fields.instant("expires"))
                return (version, try fields.present(expires, "expires"), Dictionary(named) { _, last in last })
            }
        }
    }
}

/// A campaign that has to be signed, as a device sees it.
struct Signed {
    private let sources: [Source], install: Install, id: String
    /// What a model is stored under: one that was stored unsigned is not one that was signed.
    let digest: String
    init(_ publisher: Publisher, _ install: Install, url: String, id: String) {
        sources = publisher.keys.map { Source(key: $0, install: install, url: url) }
        (self.install, self.id) = (install, id)
        digest = String(base64url(sha256(publisher.keys.joined(separator: "+").utf8)).prefix(16))
    }
    /// Has a directory that holds now and names the campaign, or the newest there is.
    func refresh(_ until: Deadline) throws { if try entries()?.isEmpty ?? true { try renew(until) } }
    /// Why the campaign is not one of the publisher's; nothing is fetched.
    func refusal() throws -> Refusal? { try entries().map { $0.isEmpty ? .notInDirectory : nil } ?? .directoryExpired }
    /// Throws ``LdpError`` `invalid-model` for a model that is not the campaign's, and what ``refresh(_:)`` throws.
    func check(model: Data, _ until: Deadline) throws {
        let digest = hex(sha256(model))
        if try entries()?.contains(digest) ?? false { return }
        try renew(until)
        try ensure(try entries()?.contains(digest) ?? false, "invalid-model", "the publisher has not signed this model")
    }
    /// Keeps what was seen: an older directory is refused from then on.
    func keep() throws { for source in sources { try source.keep() } }
    /// The models that the directories that hold name for the campaign, nil for one that has none; nil where none holds.
    private func entries() throws -> [String?]? {
        let standing = try sources.compactMap { try $0.newest() }.filter { $0.holds(install.now()) }
        return standing.isEmpty ? nil : standing.compactMap { $0.campaigns[id] }
    }
    /// The directory of each key anew. Throws what went wrong with the first, where none was had.
    private func renew(_ until: Deadline) throws {
        var failures: [Error] = []
        for source in sources { do { try source.renew(until) } catch { failures.append(error) } }
        if failures.count == sources.count { throw failures[0] }
    }
}

/// The directory of one key.
private struct Source {
    let key: String, install: Install, url: String, seen = Guarded<Directory?>(nil)
    private var place: String { "publisher-\(key)" }
    func renew(_ until: Deadline) throws {
        let document = try install.network.get("\(url)/v1/directories/\(key)", longest: largestDirectory, until)
        let directory = try Directory(document, key: key)
        let isNew = try newest().map { directory.version > $0.version || directory.statement == $0.statement } ?? true
        try ensure(isNew, "older-directory")
        seen.value = directory
        if try install.exists() { try keep() }
        try ensure(directory.holds(install.now()), "directory-expired")
    }
    func keep() throws {
        guard let directory = seen.value else { return }
        try install.storage.change(place) { before in
            try before.map { try Directory($0, key: key).version > directory.version } ?? false ? before : directory.document
        }
    }
    func newest() throws -> Directory? {
        try [seen.value, install.storage.read(place).map { try Directory($0, key: key) }].compactMap { $0 }.max { $0.version < $1.version }
    }
}
