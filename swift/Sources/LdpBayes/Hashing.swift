// SHA-256 (FIPS 180-4) and its HMAC (RFC 2104): the standard library has none, and CryptoKit is on Apple's platforms only.
import Foundation

func sha256(_ message: some Collection<UInt8>) -> [UInt8] {
    var state = initial
    var padded = Array(message)
    let bits = UInt64(padded.count) * 8
    padded.append(0x80)
    padded += [UInt8](repeating: 0, count: (120 - padded.count % 64) % 64)
    padded += (0..<8).map { UInt8(truncatingIfNeeded: bits >> (56 - 8 * $0)) }
    var schedule = [UInt32](repeating: 0, count: 64)
    for block in stride(from: 0, to: padded.count, by: 64) {
        for t in 0..<16 { schedule[t] = padded[(block + 4 * t)..<(block + 4 * t + 4)].reduce(0) { $0 << 8 | UInt32($1) } }
        for t in 16..<64 {
            let (w15, w2) = (schedule[t - 15], schedule[t - 2])
            let first = rotated(w15, 7) ^ rotated(w15, 18) ^ (w15 >> 3)
            let second = rotated(w2, 17) ^ rotated(w2, 19) ^ (w2 >> 10)
            schedule[t] = schedule[t - 16] &+ first &+ schedule[t - 7] &+ second
        }
        var (a, b, c, d, e, f, g, h) = (state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7])
        for t in 0..<64 {
            let choice = (e & f) ^ (~e & g)
            let first = h &+ (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) &+ choice &+ constants[t] &+ schedule[t]
            let majority = (a & b) ^ (a & c) ^ (b & c)
            let second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) &+ majority
            (h, g, f, e, d, c, b, a) = (g, f, e, d &+ first, c, b, a, first &+ second)
        }
        for (i, word) in [a, b, c, d, e, f, g, h].enumerated() { state[i] = state[i] &+ word }
    }
    return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) } }
}
private func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 { word >> count | word << (32 - count) }
private let primes = (2...311).filter { n in !(2..<n).contains { n % $0 == 0 } }.map(UInt64.init)
private let initial = primes.prefix(8).map { fraction(of: $0, root: 2) }
private let constants = primes.map { fraction(of: $0, root: 3) }
/// The first 32 bits after the point of a root, which the standard takes of small primes: of the largest r with r^root <= n 2^(32 root).
private func fraction(of n: UInt64, root: Int) -> UInt32 {
    var found: UInt64 = 0
    for bit in (0..<37).reversed() {
        let tried = Natural(found | 1 << UInt64(bit))
        if (1..<root).reduce(tried, { power, _ in power * tried }) <= Natural(n) << (32 * root) { found |= 1 << UInt64(bit) }
    }
    return UInt32(truncatingIfNeeded: found)
}
/// HMAC-SHA256 with a key of at most 64 bytes.
func hmac(_ key: [UInt8], _ message: [UInt8]) -> [UInt8] {
    let padded = key + [UInt8](repeating: 0, count: 64 - key.count)
    return sha256(padded.map { $0 ^ 0x5c } + sha256(padded.map { $0 ^ 0x36 } + message))
}
func isBase64url(_ sign: UInt8) -> Bool { sign.isDigit || UInt8(ascii: "a")...UInt8(ascii: "z") ~= sign | 0x20 || "-_".utf8.contains(sign) }
/// Base64url without padding (RFC 4648).
func base64url(_ bytes: [UInt8]) -> String {
    let padded = Data(bytes).base64EncodedString().replacingOccurrences(of: "+", with: "-").replacingOccurrences(of: "/", with: "_")
    return String(padded.prefix { $0 != "=" })
}
/// The bytes of their one encoding in base64url; nil for any other text.
func unbase64url(_ text: String) -> [UInt8]? {
    let plain = text.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
    let bytes = Data(base64Encoded: plain + String(repeating: "=", count: (4 - plain.utf8.count % 4) % 4)).map { Array($0) }
    return bytes.map { ExactText(base64url($0)) } == ExactText(text) ? bytes : nil
}

/// Whether it is a decimal digit, in ASCII.
extension UInt8 { var isDigit: Bool { self &- UInt8(ascii: "0") < 10 } }

func hex(_ bytes: [UInt8]) -> String { bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
/// Bytes of hexadecimal digits that this device wrote itself; nil for any other text.
func unhex(_ text: String) -> [UInt8]? {
    let digits = text.utf8.map { Character(Unicode.Scalar($0)).hexDigitValue }
    guard digits.count % 2 == 0, !digits.contains(nil) else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0]! << 4 | digits[$0 + 1]!) }
}
func littleEndian(_ value: Int, _ width: Int) -> [UInt8] { (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
