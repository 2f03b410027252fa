import Foundation

/// The limits that an app decides, in seconds; the names and the values are those of the Python client.
public struct Policy {
    /// ``Device/start(firstDelay:)`` waits a random time up to this before a first try, so that the time of arrival says little.
    public var firstDelay: TimeInterval = 600
    /** The n-th retry waits a random time below this times 2^n. */ public var backoffBase: TimeInterval = 1
    /** No retry waits longer than this, unless the server asks for it. */ public var backoffLongest: TimeInterval = 3600
    /** How long one request may take. */ public var requestTimeout: TimeInterval = 30
    /// A report is given up at this age, or when its campaign, or its window, has been over for a week; after ten tries.
    public var reportAge: TimeInterval = 30 * 86_400
    public init() {}
}

// No app decides these; the Python client's policy.py has the reasons.
let retryAfterLongest: TimeInterval = 6 * 3600
let closingGrace: TimeInterval = 7 * 86_400
let clockTolerance: TimeInterval = 86_400
let idleCheck: TimeInterval = 15 * 60
let landingTimeout: TimeInterval = 2
let expiryTries = 10
let fetchTries = 3
