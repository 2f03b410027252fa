// SHA-256 (FIPS 180-4), its HMAC (RFC 2104), and base64url: the standard library has none, and CryptoKit is on Apple's platforms only.

func sha256(_ message: some Collection<UInt8>) -> [UInt8] {
    var state: [UInt32] = [
        0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
    ]
    var padded = Array(message)
    let bits = UInt64(padded.count) * 8
    padded.append(0x80)
    padded += [UInt8](repeating: 0, count: (120 - padded.count % 64) % 64)
    padded += (0..<8).map { UInt8(truncatingIfNeeded: bits >> (56 - 8 * $0)) }
    var schedule = [UInt32](repeating: 0, count: 64)
    for block in stride(from: 0, to: padded.count, by: 64) {
        for t in 0..<16 {
            let at = block + 4 * t
            schedule[t] = UInt32(padded[at]) << 24 | UInt32(padded[at + 1]) << 16 | UInt32(padded[at + 2]) << 8 | UInt32(padded[at + 3])
        }
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

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
private let constants: [UInt32] = [
    0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5,
    0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174,
    0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da,
    0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7, 0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967,
    0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85,
    0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070,
    0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
    0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2,
]

/// HMAC-SHA256 with a key of at most 64 bytes.
func hmac(_ key: [UInt8], _ message: [UInt8]) -> [UInt8] {
    let padded = key + [UInt8](repeating: 0, count: 64 - key.count)
    return sha256(padded.map { $0 ^ 0x5c } + sha256(padded.map { $0 ^ 0x36 } + message))
}

private let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

func isBase64url(_ sign: UInt8) -> Bool { alphabet.contains(sign) }

/// Base64url without padding (RFC 4648).
func base64url(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    var (held, bits) = (0, 0)
    for byte in bytes {
        (held, bits) = (held << 8 | Int(byte), bits + 8)
        while bits >= 6 {
            bits -= 6
            text.append(alphabet[held >> bits & 63])
        }
        held &= 0xff
    }
    if bits > 0 { text.append(alphabet[held << (6 - bits) & 63]) }
    return String(decoding: text, as: UTF8.self)
}

/// The bytes of their one encoding in base64url; nil for any other text.
func unbase64url(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    var (held, bits) = (0, 0)
    for sign in text.utf8 {
        guard let value = alphabet.firstIndex(of: sign) else { return nil }
        (held, bits) = ((held & 0xff) << 6 | value, bits + 6)
        if bits >= 8 {
            bits -= 8
            bytes.append(UInt8(held >> bits & 0xff))
        }
    }
    return base64url(bytes) == text ? bytes : nil
}

extension UInt8 {
    /// Whether it is a decimal digit, in ASCII.
    var isDigit: Bool { self &- UInt8(ascii: "0") < 10 }
}

func hex(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
}

/// Bytes of hexadecimal digits that this device wrote itself; nil for any other text.
func unhex(_ text: String) -> [UInt8]? {
    let digits = text.utf8.map { Character(Unicode.Scalar($0)).hexDigitValue }
    guard digits.count % 2 == 0, !digits.contains(nil) else { return nil }
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0]! << 4 | digits[$0 + 1]!) }
}

func littleEndian(_ value: Int, _ width: Int) -> [UInt8] { (0..<width).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) } }
