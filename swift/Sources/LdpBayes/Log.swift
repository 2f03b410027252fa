// What an app's developer sees: each step and each failure with its cause, told to one function of the app's. Never a value of a record,
// a report's id, a token or a payload: what other code throws is told by its type alone.
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One thing that was done, as a device's `log` is told.
public struct Step: Equatable, Sendable, CustomStringConvertible {
    public let time: Date
    /// Empty where it is about none, or it is not known.
    public let campaignId: String
    /// A request (`document`, `state`, `model`, `directory`, `upload`), a call (`next-step`, `decide`, `grant`, `contribute`, `withdraw`,
    /// `classifier`) or `delivery`.
    public let name: String
    /// That of the failure, of a next step what it says; nil where all is well.
    public let code: String?
    /// It begins with its kind: `dns`, `tls`, `timeout`, `refused`, `reset`, `network`, `document`, or the type of an error.
    public let cause: String?
    public var description: String { "\(name): \(code ?? "-") (\(cause ?? "-")) \(campaignId)" }
}

/// Tells an app's log; nil tells nobody.
struct Teller: Sendable {
    let log: (@Sendable (Step) -> Void)?, now: @Sendable () -> Date
    func tell(_ name: String, _ campaignId: String, _ code: String?, _ error: (any Error)? = nil) {
        log?(Step(time: now(), campaignId: campaignId, name: name, code: code, cause: error.flatMap(cause)))
    }
    /// Tells how `work` ends: by the code that is found in what it makes, or by that of what it throws.
    func step<T>(
        _ name: String, _ campaignId: String, code: (T) -> String? = { _ in nil }, _ work: () throws -> T
    ) throws -> T {
        do {
            let made = try work()
            tell(name, campaignId, code(made))
            return made
        } catch {
            tell(name, campaignId, LdpBayes.code(of: error), error)
            throw error
        }
    }
    /// One exchange.
    func send(_ request: Request, by transport: any Transport) throws -> Answer {
        let parts = request.url.components(separatedBy: "/v1/campaigns/").dropFirst().first?.components(separatedBy: "/") ?? []
        let asked = parts.isEmpty ? "directory" : parts.count > 1 ? parts[1] : "document"
        return try step(
            request.body == nil ? asked : "upload", parts.first ?? "", code: { $0.status == 200 ? nil : reason(of: $0) },
            { try transport.send(request) })
    }
}

/// The code of an error, `unexpected` for one that is none of this package's, nor of the network's.
func code(of error: any Error) -> String {
    if let error = error as? LdpError { return error.code }
    return error is URLError ? cause(of: error) == "timeout" ? "timeout" : "unreachable" : "unexpected"
}

/// Why; nil where the code says it all.
private func cause(of error: any Error) -> String? {
    if case LdpError.failed(invalidDocument, let reason) = error { return "document: \(reason)" }
    if let error = error as? LdpError { return error.code == "timeout" ? "timeout" : nil }
    guard let error = error as? URLError else { return "\(type(of: error))" }
    switch error.code {
    case .cannotFindHost, .dnsLookupFailed: return "dns"
    case .timedOut: return "timeout"
    case .cannotConnectToHost: return "refused"
    case .networkConnectionLost: return "reset"
    case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid,
        .serverCertificateUntrusted, .clientCertificateRejected, .clientCertificateRequired:
        return "tls"
    default: return "network"
    }
}
