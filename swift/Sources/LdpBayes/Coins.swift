import Foundation

#if canImport(Security)
import Security
#endif

/// Exact random decisions out of 64-bit words: no floating-point number decides one. The order in which words are taken is that of
/// `protocols/vectors/README.md`.
struct Coins {
    private let word: () throws -> UInt64
    /// Coins of independent words, uniform on [0, 2^64).
    init(word: @escaping () throws -> UInt64) { self.word = word }
    /// The platform's words, drawn in blocks of 64; what is left of a block is dropped with the coins.
    static func system() -> Coins {
        var block: ArraySlice<UInt8> = []
        return Coins {
            if block.isEmpty { block = try randomBytes(8 * 64)[...] }
            defer { block.removeFirst(8) }
            return firstWord(block)
        }
    }
    /// Words that are a function of a secret and a message: one HMAC-SHA256 each, its first 8 bytes, little-endian.
    static func keyed(_ secret: [UInt8], _ message: [UInt8]) -> Coins {
        var number = 0
        return Coins {
            defer { number += 1 }
            return firstWord(hmac(secret, message + littleEndian(number, 4))[...])
        }
    }
    private static func firstWord(_ bytes: ArraySlice<UInt8>) -> UInt64 { bytes.prefix(8).reversed().reduce(0) { $0 << 8 | UInt64($1) } }
    /// True with probability `probability` / 2^64.
    func bernoulli(_ probability: UInt64) throws -> Bool { try word() < probability }
    /// True with probability (1 + v) / 2, v being a quantity in units of 2^-52.
    func sign(_ v: Int64) throws -> Bool { try Int64(word() >> 11) < v + unit }
    /// Uniform in [0, bound), by rejection, never by modulo; 1 takes no word.
    func below(_ bound: Natural) throws -> Natural {
        if let word = bound.word { return Natural(try below(word)) }
        let bits = (bound - Natural(1)).bitLength
        var drawn = bound
        while drawn >= bound {
            var words = try (0..<(bits + 63) / 64).map { _ in try word() }
            words[words.count - 1] &= .max >> UInt64((64 - bits % 64) % 64)
            drawn = Natural(words: words)
        }
        return drawn
    }
    func below(_ bound: UInt64) throws -> UInt64 {
        let mask = bound == 1 ? 0 : UInt64.max >> UInt64((bound - 1).leadingZeroBitCount)
        var drawn: UInt64 = 0
        repeat { drawn = mask == 0 ? 0 : try word() & mask } while drawn >= bound
        return drawn
    }
    func below(_ bound: Int) throws -> Int { Int(try below(UInt64(bound))) }
    /// A uniformly random subset of the numbers below `population` (Floyd's algorithm).
    func subset(of population: Int, size: Int) throws -> Set<Int> {
        var chosen: Set<Int> = []
        for last in population - size..<population where !chosen.insert(try below(last + 1)).inserted { chosen.insert(last) }
        return chosen
    }
    /// Discrete Laplace noise whose scale is a fraction in lowest terms (Canonne, Kamath, Steinke 2020, Algorithm 2).
    func discreteLaplace(_ numerator: Natural, _ denominator: Natural) throws -> (isNegative: Bool, magnitude: Natural) {
        while true {
            let offset = try below(numerator)
            if !(try exponential(offset, numerator)) { continue }
            var periods: UInt64 = 0
            while try exponential(Natural(1), Natural(1)) { periods += 1 }
            let magnitude = (offset + numerator * Natural(periods)) / denominator
            let isNegative = try below(2) == 1
            if !(isNegative && magnitude.isZero) { return (isNegative, magnitude) }
        }
    }
    /// True with probability exp(-numerator / denominator) (Algorithm 1).
    private func exponential(_ numerator: Natural, _ denominator: Natural) throws -> Bool {
        var trials: UInt64 = 1
        while try below(denominator * Natural(trials)) < numerator { trials += 1 }
        return trials % 2 == 1
    }
}

/// Bytes of the platform's generator. Throws `no-randomness` where it has none: nothing is drawn then. `SystemRandomNumberGenerator` is
/// the same generator, but ends the process where it fails, or goes on with another source.
func randomBytes(_ size: Int) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: size)
    #if canImport(Security)
    let worked = SecRandomCopyBytes(kSecRandomDefault, size, &bytes) == errSecSuccess
    #else
    // 256 bytes at most for each call.
    let worked = stride(from: 0, to: size, by: 256).allSatisfy { start in
        bytes.withUnsafeMutableBytes { getentropy($0.baseAddress! + start, min(256, size - start)) } == 0
    }
    #endif
    try ensure(worked, "no-randomness", "the platform has no generator of random numbers that works")
    return bytes
}
