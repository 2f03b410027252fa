import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// One request; a `body` makes it a POST. An answer longer than `longest` bytes is none.
public struct Request: Sendable { public let url: String, headers: [String: String], body: Data?, timeout: TimeInterval, longest: Int }

/// What a server said: its status, its headers by lower-case name, its body.
public struct Answer: Sendable {
    public let status: Int, headers: [String: String], body: Data
    public init(status: Int, headers: [String: String], body: Data) { (self.status, self.headers, self.body) = (status, headers, body) }
}

/// Carries requests; an app may bring its own. It sends the headers of the request and what HTTP needs, no cookie and no name of the
/// device or of the app, follows no redirect, and keeps nothing.
public protocol Transport: Sendable {
    /// The answer, whatever its status. Throws where there is none in time.
    func send(_ request: Request) throws -> Answer
}

/// The platform's `URLSession`: a session, and a connection, of its own for each request, without cookies, caches or credentials.
public struct URLSessionTransport: Transport {
    public init() {}
    public func send(_ request: Request) throws -> Answer {
        let configuration = URLSessionConfiguration.ephemeral
        (configuration.httpCookieStorage, configuration.urlCache, configuration.urlCredentialStorage) = (nil, nil, nil)
        configuration.timeoutIntervalForResource = request.timeout
        var asked = URLRequest(url: try URL(string: request.url) ?? raise(failure("bad-url")))
        (asked.httpMethod, asked.httpBody) = (request.body == nil ? "GET" : "POST", request.body)
        // What would otherwise name the platform, its version, its language and the app.
        let fixed = ["User-Agent": "ldp-bayes", "Accept": "*/*", "Accept-Encoding": "identity", "Accept-Language": "*"]
        for (name, value) in fixed.merging(request.headers, uniquingKeysWith: { $1 }) { asked.setValue(value, forHTTPHeaderField: name) }
        let reception = Reception(longest: request.longest)
        let session = URLSession(configuration: configuration, delegate: reception, delegateQueue: nil)
        defer { session.invalidateAndCancel() }
        session.dataTask(with: asked).resume()
        // The session's own time is one between packets on some platforms.
        guard reception.done.wait(timeout: .now() + request.timeout) == .success else { throw URLError(.timedOut) }
        return try reception.answer()
    }
}

/// One answer, as it comes in, on a queue that does one thing after another; it is read when it is `done`.
private final class Reception: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    let done = DispatchSemaphore(value: 0)
    private let longest: Int
    private var body = Data(), response: HTTPURLResponse?, failed: Error?
    init(longest: Int) { self.longest = longest }
    func answer() throws -> Answer {
        guard failed == nil, let response else { throw failed ?? URLError(.badServerResponse) }
        let headers = response.allHeaderFields.map { ("\($0)".lowercased(), "\($1)") }
        return Answer(status: response.statusCode, headers: Dictionary(headers) { _, last in last }, body: body)
    }
    func urlSession(
        _: URLSession, task _: URLSessionTask, willPerformHTTPRedirection _: HTTPURLResponse, newRequest _: URLRequest,
        completionHandler: @escaping (URLRequest?) -> Void
    ) { completionHandler(nil) }
    func urlSession(_: URLSession, dataTask task: URLSessionDataTask, didReceive data: Data) {
        body.append(data)
        if body.count > longest { task.cancel() }
    }
    func urlSession(_: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        response = task.response as? HTTPURLResponse
        failed = body.count > longest ? URLError(.dataLengthExceedsMaximum) : error
        done.signal()
    }
}

/// The end of the time that a call may take, by a clock that nobody sets.
struct Deadline {
    private let end: TimeInterval
    init(in timeout: TimeInterval) { end = monotonic() + timeout }
    var left: TimeInterval { end - monotonic() }
    /// Throws ``LdpError/away(code:)`` `timeout` at the end.
    func check() throws { if left <= 0 { throw LdpError.away(code: "timeout") } }
}

/// What `work` makes within `timeout`. Throws what it throws, and `timeout`: storages and transports of an app wait for as long as they like.
func inTime<T: Sendable>(_ timeout: TimeInterval, _ work: @escaping @Sendable (Deadline) throws -> T) throws -> T {
    let (until, done, result) = (Deadline(in: timeout), DispatchSemaphore(value: 0), Guarded<Result<T, any Error>?>(nil))
    Thread {
        result.value = Result { try work(until) }
        done.signal()
    }.start()
    guard done.wait(timeout: .now() + timeout) == .success, let result = result.value else { throw LdpError.away(code: "timeout") }
    return try result.get()
}

/// One aggregator, as the device asks it.
struct Network {
    let transport: any Transport, policy: Policy, teller: Teller
    static let (largestAnswer, largestModel, largestState) = (1 << 20, 64 << 20, 1024)
    /// The answer to an upload; nil where there was none.
    func upload(_ url: String, _ body: Data) -> Answer? {
        let (headers, longest) = (["Content-Type": mediaType], Network.largestAnswer)
        return send(Request(url: url, headers: headers, body: body, timeout: policy.requestTimeout, longest: longest))
    }
    /// The bytes at an address, tried a few times until then. Throws ``LdpError/away(code:)``, `timeout` at the end of the time.
    func get(_ url: String, longest: Int, _ until: Deadline) throws -> Data {
        for tries in 1... {
            if tries > 1 { Thread.sleep(forTimeInterval: max(0, min(policy.backoffBase, until.left))) }
            try until.check()
            let wait = min(policy.requestTimeout, until.left)
            let answer = send(Request(url: url, headers: [:], body: nil, timeout: wait, longest: longest))
            if let answer, answer.status == 200 { return answer.body }
            let isLater = answer.map { $0.status >= 500 || $0.status == 429 } ?? true
            if isLater { try until.check() }
            if !isLater || tries == fetchTries { throw LdpError.away(code: reason(of: answer)) }
        }
        preconditionFailure("it ends after the last try")
    }
    /// How a campaign stands, in one short try; nil where that is not said.
    func state(_ url: String, wait: TimeInterval) -> Data? {
        let (wait, longest) = (min(policy.requestTimeout, stateWait, wait), Network.largestState)
        let answer = send(Request(url: url, headers: [:], body: nil, timeout: wait, longest: longest))
        return answer.flatMap { $0.status == 200 && $0.body.count <= longest ? $0.body : nil }
    }
    /// A transport of the app's own may throw anything: the report only has to be tried again.
    private func send(_ request: Request) -> Answer? { try? teller.send(request, by: transport) }
    /// The address without a slash at its end. Throws ``LdpError`` `bad-url` for one that reports must not be sent to.
    func checked(_ url: String) throws -> String {
        let hosts = Network.hosts + (policy.allowPlainHttp ? "|http://(\(Network.near))" : "")
        let isRight = url.range(of: "^(\(hosts))\(Network.path)\\z", options: .regularExpression) != nil
        try ensure(isRight, "bad-url", "must be https, or http on loopback, in ASCII; Policy.allowPlainHttp is for debug builds")
        return String(url.reversed().drop { $0 == "/" }.reversed())
    }
    /// ASCII, the host in lower case, without the standard port.
    private static let hosts = #"https://([a-z0-9._-]+|\[[a-f0-9:]+\])|http://(localhost|127(\.[0-9]+){3}|\[::1\])"#
    private static let near = #"10(\.[0-9]{1,3}){3}|(192\.168|172\.(1[6-9]|2[0-9]|3[01]))(\.[0-9]{1,3}){2}|[a-z0-9-]+\.local"#
    private static let path = #"(:(?!(443|80)\b)[0-9]+)?(/[A-Za-z0-9_./~%-]*)?"#
}
