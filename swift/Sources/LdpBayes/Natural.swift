/// A whole number from 0 on, of any size: what losses and noise are reckoned with.
struct Natural: Hashable, Comparable {
    /// Least significant first, the last one not 0.
    private var words: [UInt64]
    init(_ word: UInt64) { words = word == 0 ? [] : [word] }
    init(words: [UInt64]) {
        self.words = words
        while self.words.last == 0 { self.words.removeLast() }
    }
    /// Decimal digits, and nothing else.
    init(digits: some Sequence<UInt8>) { self = digits.reduce(Natural(0)) { $0 * Natural(10) + Natural(UInt64($1 - UInt8(ascii: "0"))) } }
    static func power(ofTwo exponent: Int) -> Natural { Natural(1) << exponent }
    static func power(ofTen exponent: Int) -> Natural { Natural(digits: ("1" + String(repeating: "0", count: exponent)).utf8) }
    var isZero: Bool { words.isEmpty }
    var bitLength: Int { 64 * words.count - (words.last?.leadingZeroBitCount ?? 0) }
    var trailingZeroBitCount: Int { words.firstIndex { $0 != 0 }.map { 64 * $0 + words[$0].trailingZeroBitCount } ?? 0 }
    /// The number as one word; nil where it does not fit.
    var word: UInt64? { words.count > 1 ? nil : words.first ?? 0 }
    /// The nearest double, or one beside it.
    var double: Double { words.reversed().reduce(0) { $0 * 0x1p64 + Double($1) } }
    static func < (a: Natural, b: Natural) -> Bool {
        if a.words.count != b.words.count { return a.words.count < b.words.count }
        return a.words.reversed().lexicographicallyPrecedes(b.words.reversed())
    }
    static func + (a: Natural, b: Natural) -> Natural {
        var (sum, other) = a.words.count >= b.words.count ? (a.words, b.words) : (b.words, a.words)
        other += [UInt64](repeating: 0, count: sum.count - other.count)
        var carry: UInt64 = 0
        for i in sum.indices {
            let (part, first) = sum[i].addingReportingOverflow(other[i])
            let (whole, second) = part.addingReportingOverflow(carry)
            (sum[i], carry) = (whole, first || second ? 1 : 0)
        }
        return Natural(words: sum + [carry])
    }
    /// `b` must not be above `a`.
    static func - (a: Natural, b: Natural) -> Natural {
        var (rest, borrow) = (a.words, UInt64(0))
        for i in rest.indices {
            let (part, first) = rest[i].subtractingReportingOverflow(i < b.words.count ? b.words[i] : 0)
            let (whole, second) = part.subtractingReportingOverflow(borrow)
            (rest[i], borrow) = (whole, first || second ? 1 : 0)
        }
        precondition(borrow == 0 && a.words.count >= b.words.count)
        return Natural(words: rest)
    }
    static func * (a: Natural, b: Natural) -> Natural {
        var product = [UInt64](repeating: 0, count: a.words.count + b.words.count)
        for i in a.words.indices {
            var carry: UInt64 = 0
            for j in b.words.indices {
                let (high, low) = a.words[i].multipliedFullWidth(by: b.words[j])
                let (first, overflow) = low.addingReportingOverflow(carry)
                let (second, again) = first.addingReportingOverflow(product[i + j])
                (product[i + j], carry) = (second, high + (overflow ? 1 : 0) + (again ? 1 : 0))
            }
            product[i + b.words.count] = carry
        }
        return Natural(words: product)
    }
    static func << (a: Natural, count: Int) -> Natural {
        var (shifted, carry) = ([UInt64](repeating: 0, count: count / 64), UInt64(0))
        for word in a.words {
            shifted.append(word << (count % 64) | carry)
            carry = word >> (64 - count % 64)  // 0 where no bit is shifted
        }
        return Natural(words: shifted + [carry])
    }
    static func >> (a: Natural, count: Int) -> Natural {
        let kept = Array(a.words.dropFirst(count / 64)) + [0]
        return Natural(words: zip(kept, kept.dropFirst()).map { $0 >> (count % 64) | $1 << (64 - count % 64) })
    }
    /// Digit by digit in base 2, but for a divisor of one word: nearly all are.
    func quotientAndRemainder(dividingBy divisor: Natural) -> (quotient: Natural, remainder: Natural) {
        var quotient = words
        if let word = divisor.word {
            var rest: UInt64 = 0
            for i in quotient.indices.reversed() { (quotient[i], rest) = word.dividingFullWidth((rest, quotient[i])) }
            return (Natural(words: quotient), Natural(rest))
        }
        quotient = [UInt64](repeating: 0, count: words.count)
        var rest = self
        for shift in (0...max(0, bitLength - divisor.bitLength)).reversed() {
            let part = divisor << shift
            if part <= rest {
                rest = rest - part
                quotient[shift / 64] |= 1 << UInt64(shift % 64)
            }
        }
        return (Natural(words: quotient), rest)
    }
    static func / (a: Natural, b: Natural) -> Natural { a.quotientAndRemainder(dividingBy: b).quotient }
    /// The quotient, rounded up.
    func dividedUp(by divisor: Natural) -> Natural {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder.isZero ? quotient : quotient + Natural(1)
    }
}
