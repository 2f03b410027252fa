/// A fraction from 0 on: losses, and the epsilons that they must stay within. The denominator is not 0.
struct Ratio: Comparable {
    let numerator: Natural
    let denominator: Natural
    static let zero = Ratio(numerator: Natural(0), denominator: Natural(1))
    init(numerator: Natural, denominator: Natural) { (self.numerator, self.denominator) = (numerator, denominator) }
    /// A finite double from 0 on, as it is.
    init(_ double: Double) {
        let exponent = (double.isNormal ? Int(double.exponentBitPattern) : 1) - 1075  // of its last bit
        let significand = Natural(double.significandBitPattern | (double.isNormal ? 1 << 52 : 0))
        self.init(numerator: significand << max(0, exponent), denominator: .power(ofTwo: max(0, -exponent)))
    }
    /// The shortest decimal that a finite double from 0 on is read from, the nearest of those: what a person has written.
    init(writtenAs double: Double) {
        let parts = double.description.split(separator: "e")
        let digits = parts[0].split(separator: ".")
        let exponent = (parts.count > 1 ? Int(parts[1])! : 0) - (digits.count > 1 ? digits[1].utf8.count : 0)
        let numerator = Natural(digits: digits.joined().utf8) * .power(ofTen: max(0, exponent))
        self.init(numerator: numerator, denominator: .power(ofTen: max(0, -exponent)))
    }
    static func == (a: Ratio, b: Ratio) -> Bool { a.numerator * b.denominator == b.numerator * a.denominator }
    static func < (a: Ratio, b: Ratio) -> Bool { a.numerator * b.denominator < b.numerator * a.denominator }
    static func + (a: Ratio, b: Ratio) -> Ratio {
        let (large, small) = a.denominator > b.denominator ? (a, b) : (b, a)
        // Most denominators are powers of two: a thousand of them multiplied would be a long number.
        let (factor, rest) = large.denominator.quotientAndRemainder(dividingBy: small.denominator)
        if rest.isZero { return Ratio(numerator: large.numerator + small.numerator * factor, denominator: large.denominator) }
        return Ratio(numerator: a.numerator * b.denominator + b.numerator * a.denominator, denominator: a.denominator * b.denominator)
    }
    /// Whether a loss is certainly at most `epsilon`: the lesser of its decimal text and its double.
    func isWithin(_ epsilon: Double) -> Bool { self <= Ratio(writtenAs: epsilon) && self <= Ratio(epsilon) }
    /// The least double that is not below this number, which is above 2^-200 or 0.
    var roundedUp: Double {
        if numerator.isZero { return 0 }
        let exponent = numerator.bitLength - denominator.bitLength - 53
        // 53 bits or 54, of which a double keeps 53.
        let quotient = (numerator << max(0, -exponent)).dividedUp(by: denominator << max(0, exponent))
        let extra = quotient.bitLength - 53
        let significand = extra > 0 ? quotient.dividedUp(by: .power(ofTwo: extra)) : quotient
        return Double(sign: .plus, exponent: exponent + max(0, extra), significand: Double(significand.word!))
    }
}

private let logarithmBits = 192
/// An upper bound of ln(a / b), less than 2^-170 above it; 0 for a <= b, and for no other. `b` is not 0.
/// a / b is m 2^k with m in [1, 2), and ln m = 2 artanh((m - 1) / (m + 1)).
func logarithmUp(_ a: Natural, _ b: Natural) -> Ratio {
    if a <= b { return .zero }
    let (unit, ratio) = (Natural.power(ofTwo: logarithmBits), (a << logarithmBits) / b)
    let k = ratio.bitLength - 1 - logarithmBits
    let artanh = twiceArtanh(((ratio - (unit << k)) << logarithmBits) / (ratio + (unit << k)))
    let sum = artanh + Natural(UInt64(k)) * twiceArtanh(unit / Natural(3))
    // Every number above is rounded down, by less than 4 units for each of the 62 terms at most; k is at most some hundreds.
    return Ratio(numerator: sum + .power(ofTwo: 20), denominator: unit)
}
/// 2 artanh(z / 2^192) * 2^192 for z up to a third, the series' terms rounded down.
private func twiceArtanh(_ z: Natural) -> Natural {
    let square = (z * z) >> logarithmBits
    var (power, sum, place) = (z, Natural(0), UInt64(1))
    while !power.isZero {
        sum = sum + power / Natural(place)
        power = (power * square) >> logarithmBits
        place += 2
    }
    return sum << 1
}
