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
    init(digits: some Sequence<UInt8>) {
        words = []
        for digit in digits {
            var carry = UInt64(digit - UInt8(ascii: "0"))
            for i in words.indices {
                let (high, low) = words[i].multipliedFullWidth(by: 10)
                let (sum, overflow) = low.addingReportingOverflow(carry)
                (words[i], carry) = (sum, high + (overflow ? 1 : 0))
            }
            if carry > 0 { words.append(carry) }
        }
    }

    static func power(ofTwo exponent: Int) -> Natural { Natural(1) << exponent }
    static func power(ofTen exponent: Int) -> Natural { Natural(digits: ("1" + String(repeating: "0", count: exponent)).utf8) }

    var isZero: Bool { words.isEmpty }
    var bitLength: Int { 64 * words.count - (words.last?.leadingZeroBitCount ?? 0) }
    var trailingZeroBitCount: Int {
        guard let first = words.firstIndex(where: { $0 != 0 }) else { return 0 }
        return 64 * first + words[first].trailingZeroBitCount
    }

    /// The number as one word; nil where it does not fit.
    var word: UInt64? { words.count > 1 ? nil : words.first ?? 0 }

    static func < (a: Natural, b: Natural) -> Bool {
        if a.words.count != b.words.count { return a.words.count < b.words.count }
        for i in a.words.indices.reversed() where a.words[i] != b.words[i] { return a.words[i] < b.words[i] }
        return false
    }

    static func + (a: Natural, b: Natural) -> Natural {
        var (sum, other) = a.words.count >= b.words.count ? (a.words, b.words) : (b.words, a.words)
        var carry = false
        for i in sum.indices {
            if i >= other.count && !carry { break }
            let (part, first) = sum[i].addingReportingOverflow(i < other.count ? other[i] : 0)
            let (whole, second) = part.addingReportingOverflow(carry ? 1 : 0)
            (sum[i], carry) = (whole, first || second)
        }
        if carry { sum.append(1) }
        other = []
        return Natural(words: sum)
    }

    /// `b` must not be above `a`.
    static func - (a: Natural, b: Natural) -> Natural {
        precondition(b <= a)
        var rest = a.words
        var borrow = false
        for i in rest.indices {
            let (part, first) = rest[i].subtractingReportingOverflow(i < b.words.count ? b.words[i] : 0)
            let (whole, second) = part.subtractingReportingOverflow(borrow ? 1 : 0)
            (rest[i], borrow) = (whole, first || second)
        }
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
                product[i + j] = second
                carry = high &+ (overflow ? 1 : 0) &+ (again ? 1 : 0)
            }
            product[i + b.words.count] = carry
        }
        return Natural(words: product)
    }

    static func << (a: Natural, count: Int) -> Natural {
        let (whole, bits) = (count / 64, count % 64)
        var shifted = [UInt64](repeating: 0, count: whole)
        shifted.reserveCapacity(whole + a.words.count + 1)
        var carry: UInt64 = 0
        for word in a.words {
            shifted.append(word << bits | carry)
            carry = bits == 0 ? 0 : word >> (64 - bits)
        }
        shifted.append(carry)
        return Natural(words: shifted)
    }

    static func >> (a: Natural, count: Int) -> Natural {
        let (whole, bits) = (count / 64, count % 64)
        if whole >= a.words.count { return Natural(0) }
        let kept = a.words[whole...]
        return Natural(words: kept.indices.map { i in
            kept[i] >> bits | (bits == 0 || i + 1 == kept.endIndex ? 0 : kept[i + 1] << (64 - bits))
        })
    }

    /// Knuth, The Art of Computer Programming 2, Algorithm 4.3.1 D, in digits of 64 bits.
    func quotientAndRemainder(dividingBy divisor: Natural) -> (quotient: Natural, remainder: Natural) {
        precondition(!divisor.isZero)
        if self < divisor { return (Natural(0), self) }
        if divisor.words.count == 1 { return divided(by: divisor.words[0]) }
        let shift = divisor.words.last!.leadingZeroBitCount
        let v = (divisor << shift).words
        var u = (self << shift).words
        let n = v.count
        while u.count <= words.count { u.append(0) }
        var quotient = [UInt64](repeating: 0, count: u.count - n)
        for j in quotient.indices.reversed() {
            // The first guess is 2 too large at most; with the second digit of the divisor nearly never.
            var guess: UInt64 = .max
            if u[j + n] < v[n - 1] {
                var rest: UInt64
                (guess, rest) = v[n - 1].dividingFullWidth((u[j + n], u[j + n - 1]))
                while true {
                    let (high, low) = guess.multipliedFullWidth(by: v[n - 2])
                    if high < rest || high == rest && low <= u[j + n - 2] { break }
                    guess -= 1
                    let (sum, overflow) = rest.addingReportingOverflow(v[n - 1])
                    if overflow { break }
                    rest = sum
                }
            }
            var (borrow, carry): (Bool, UInt64) = (false, 0)
            for i in 0...n {
                let (high, low) = guess.multipliedFullWidth(by: i < n ? v[i] : 0)
                let (taken, overflow) = low.addingReportingOverflow(carry)
                carry = high + (overflow ? 1 : 0)
                let (part, first) = u[i + j].subtractingReportingOverflow(taken)
                let (whole, second) = part.subtractingReportingOverflow(borrow ? 1 : 0)
                (u[i + j], borrow) = (whole, first || second)
            }
            while borrow {
                guess -= 1
                var carry = false
                for i in 0...n {
                    let (part, first) = u[i + j].addingReportingOverflow(i < n ? v[i] : 0)
                    let (whole, second) = part.addingReportingOverflow(carry ? 1 : 0)
                    (u[i + j], carry) = (whole, first || second)
                }
                borrow = !carry
            }
            quotient[j] = guess
        }
        return (Natural(words: quotient), Natural(words: u) >> shift)
    }

    private func divided(by divisor: UInt64) -> (Natural, Natural) {
        var quotient = words
        var rest: UInt64 = 0
        for i in quotient.indices.reversed() { (quotient[i], rest) = divisor.dividingFullWidth((rest, quotient[i])) }
        return (Natural(words: quotient), Natural(rest))
    }

    static func / (a: Natural, b: Natural) -> Natural { a.quotientAndRemainder(dividingBy: b).quotient }

    /// The quotient, rounded up.
    func dividedUp(by divisor: Natural) -> Natural {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder.isZero ? quotient : quotient + Natural(1)
    }
}
