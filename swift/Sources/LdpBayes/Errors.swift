/// What this library refuses. `code` is stable and is the word that the clients in Python, JavaScript and Kotlin use for it; the
/// description is for people. No description holds a value of anybody's record.
public enum LdpError: Error, Equatable, CustomStringConvertible {
    /// The app's mistake, the platform's, or a document that is not what it promises.
    case failed(code: String, reason: String)
    /// What was asked for cannot be had now: the server's code, or `unreachable`. Later it may.
    case away(code: String)
    /// A campaign that this device does not answer; nothing was drawn and nothing was spent.
    case refused(Refusal)
    /// The stable word for what is wrong.
    public var code: String {
        switch self {
        case .failed(let code, _), .away(let code): return code
        case .refused(let refusal): return refusal.rawValue
        }
    }
    public var description: String { if case .failed(let code, let reason) = self { "\(code) \(reason)" } else { code } }
}

let invalidDocument = "invalid-document"
func failure(_ code: String, _ reason: String = "") -> LdpError { .failed(code: code, reason: reason) }
/// Throws, where an expression is wanted: `try value ?? raise(failure("..."))`.
func raise<T>(_ error: LdpError) throws -> T { throw error }
func ensure(_ right: Bool, _ code: String, _ reason: @autoclosure () -> String = "") throws { if !right { throw failure(code, reason()) } }
/// Runs `read`, whose refusals have another `code` where a document of another kind is read.
func refused<T>(as code: String, _ read: () throws -> T) throws -> T { do { return try read() } catch { throw failure(code, "\(error)") } }
