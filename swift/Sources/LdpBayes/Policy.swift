/// The limits that an app decides, in seconds; the names and the values are those of the Python client.
public struct Policy: Sendable {
    /// A first try in the background waits a random time up to this, so that its moment says little.
    public var firstDelay = 600.0
    /// The n-th retry waits a random time below this times 2^n.
    public var backoffBase = 1.0
    /// No retry waits longer than this, unless the server asks for it.
    public var backoffLongest = 3600.0
    /// How long one request may take.
    public var requestTimeout = 30.0
    /// A report is given up at this age, or when its campaign, or its window, has been over for a week; after ten tries.
    public var reportAge = 30 * 86_400.0
    /// For debug builds alone: plain HTTP to a developer's machine, which is a private address, or a name that ends in `.local`. Loopback
    /// needs no switch.
    public var allowPlainHttp = false
    public init() {}
}

// No app decides these; the Python client's policy.py has the reasons.
let retryAfterLongest = 6 * 3600.0
let closingGrace = 7 * 86_400.0
let clockTolerance = 86_400.0
let idleCheck = 15 * 60.0
let landingTimeout = 2.0
let expiryTries = 10
let fetchTries = 3
let secondWord = 86_400.0
let stateAge = 86_400.0
let stateRetry = 600.0
let stateWait = 5.0
