/// What a record answers, before the mechanism: a cell, or a value that belongs to one, V / 2^52. It must not leave the device.
enum Item: Equatable {
    case index(Int)
    case moment(cell: Int, value: Int64)
}

/// A value's one: it is an integer V and means V / 2^52.
let unit: Int64 = 1 << 52
/// The form of what is perturbed.
enum Encoding: String, CaseIterable { case index, sign, moment }

/// How a record's answer becomes noise.
struct Mechanism: Hashable {
    /// The mechanisms, with the numbers that a document gives: a probability is an integer P and means P / 2^64.
    enum Kind: Hashable {
        /// Direct encoding: the true index with probability p, else any other one.
        case direct(p: UInt64)
        /// Subset selection: w random indices, the true one among them with probability p.
        case subset(w: Natural, p: UInt64)
        /// Unary encoding (`oue`, `sue`, `the`): a bit per index, set with probability p for the true one, q for any other.
        case unary(p: UInt64, q: UInt64)
        /// One bit of one cell: a cell drawn at random, and a bit whose bias tells the value there.
        case oneBit(p: UInt64)
        /// A one-hot vector, or a value at its cell rounded at random to the grid, with discrete Laplace noise in every cell.
        case noisyVector(NoisyVector)
    }
    /// As documents write it, and the cells of the question.
    let name: String, domainSize: Int
    let kind: Kind
    /// Numbers that a document gives, and encodings that are answered: the one table.
    static let table: [String: (numbers: [String], encodings: Set<Encoding>)] = [
        "de": (["p"], [.index, .sign]), "ss": (["w", "p"], [.index, .sign]),
        "oue": (["p", "q"], [.index, .sign]), "sue": (["p", "q"], [.index, .sign]), "the": (["p", "q"], [.index, .sign]),
        "onebit": (["p"], [.moment]), "she": (["scale"], [.index]), "laplace": (["grid", "scale"], [.moment]),
    ]
    /// `numbers` are in the table's order; those called p or q are below 2^64.
    init(_ name: String, domainSize: Int, _ numbers: [Natural]) {
        (self.name, self.domainSize) = (name, domainSize)
        let last = numbers.last!
        switch name {
        case "de": kind = .direct(p: last.word!)
        case "ss": kind = .subset(w: numbers[0], p: last.word!)
        case "onebit": kind = .oneBit(p: last.word!)
        case "she": kind = .noisyVector(NoisyVector(grid: Natural(0), scale: last))
        case "laplace": kind = .noisyVector(NoisyVector(grid: numbers[0], scale: last))
        default: kind = .unary(p: numbers[0].word!, q: last.word!)
        }
    }
    /// The worst-case log likelihood ratio, rounded up; nil where the numbers make no mechanism, or one without signal.
    var loss: Ratio? {
        func not(_ p: UInt64) -> Natural { .power(ofTwo: 64) - Natural(p) }
        let d = Natural(UInt64(domainSize))
        let loss: Ratio
        switch kind {
        case .direct(let p): loss = logarithmUp(Natural(p) * (d - Natural(1)), not(p))
        case .subset(let w, let p): loss = w < d ? logarithmUp(Natural(p) * (d - w), not(p) * w) : .zero
        case .unary(let p, let q): loss = logarithmUp(Natural(p) * not(q), Natural(q) * not(p))
        case .oneBit(let p): loss = logarithmUp(Natural(p), not(p))
        case .noisyVector(let noise): return noise.loss
        }
        return loss > .zero ? loss : nil
    }
    /// Bytes of the payload.
    var width: Int {
        switch kind {
        case .direct: return indexWidth
        case .oneBit: return indexWidth + 1
        case .noisyVector: return 4 * domainSize
        case .subset, .unary: return (domainSize + 7) / 8
        }
    }
    private var indexWidth: Int { domainSize <= 256 ? 1 : domainSize <= 65536 ? 2 : 4 }
    /// The payload for an item.
    func perturb(_ item: Item, _ coins: Coins) throws -> [UInt8] {
        switch (kind, item) {
        case (.direct(let p), .index(let index)):
            let said = try coins.bernoulli(p) ? index : coins.below(domainSize - 1).except(index)
            return littleEndian(said, indexWidth)
        case (.subset(let w, let p), .index(let index)):
            let isIncluded = try coins.bernoulli(p)
            let others = try coins.subset(of: domainSize - 1, size: Int(w.word!) - (isIncluded ? 1 : 0)).map { $0.except(index) }
            return bitmap(isIncluded ? others + [index] : others)
        case (.unary(let p, let q), .index(let index)):
            return bitmap(try (0..<domainSize).filter { try coins.bernoulli($0 == index ? p : q) })
        case (.oneBit, .moment(let cell, let value)):
            let drawn = try coins.below(domainSize)
            let bit = try coins.bernoulli(threshold(drawn == cell ? value : 0))
            return littleEndian(drawn, indexWidth) + [bit ? 1 : 0]
        case (.noisyVector(let noise), .index(let index)):
            return try noise.cells(domainSize, item: index, value: 1, coins)
        case (.noisyVector(let noise), .moment(let cell, let value)):
            return try noise.cells(domainSize, item: cell, value: noise.rounded(value, coins), coins)
        default: preconditionFailure("a question's encoding is one that its mechanism answers")
        }
    }
    /// Of one bit, the probability of a 1, of 2^64, where this value lies in the cell that is drawn.
    func threshold(_ value: Int64) -> UInt64 {
        guard case .oneBit(let p) = kind else { preconditionFailure("one bit alone has a threshold") }
        // The signal makes p more than a half: 2 p - 1 is what is left beyond 64 bits.
        let (high, low) = (p &* 2).multipliedFullWidth(by: UInt64(value + unit))
        return (0 &- p) &+ (high << 11 | low >> 53)
    }
    /// The true cell is marked with probability p / 2^64, any other one with q, one and no more or not; nil where answers mark nothing.
    var marking: (p: UInt64, q: Double, isOne: Bool)? {
        let others = Double(domainSize - 1)
        switch kind {
        case .direct(let p): return (p, share(0 &- p) / others, true)
        case .subset(let w, let p):
            let size = Double(w.word!)
            return (p, (share(p) * (size - 1) + share(0 &- p) * size) / others, size == 1)
        case .unary(let p, let q): return (p, share(q), false)
        case .oneBit, .noisyVector: return nil
        }
    }
    /// The cells that a payload marks, in order.
    func marked(_ payload: [UInt8]) -> [Int] {
        if case .direct = kind { return [number(payload)] }
        return (0..<domainSize).filter { payload[$0 / 8] >> UInt8($0 % 8) & 1 == 1 }
    }
    /// The scale of the noise in every cell, in units of the largest value; nil where there is none.
    var noise: Double? { if case .noisyVector(let noise) = kind { noise.relativeScale } else { nil } }
    private func bitmap(_ indices: [Int]) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: (domainSize + 7) / 8)
        for index in indices { bytes[index / 8] |= 1 << UInt8(index % 8) }
        return bytes
    }
}

/// The noise of `she` and `laplace`: discrete Laplace with a scale in units of 2^-40, on a grid of 2^-grid.
struct NoisyVector: Hashable {
    let grid: Natural, scale: Natural
    private static let (scaleBits, finestGrid) = (40, Natural(12))
    /// Nil where a cell would not fit the payload.
    var loss: Ratio? {
        guard grid <= NoisyVector.finestGrid, scale.bitLength <= 68, bound < 1 << 31 else { return nil }
        return Ratio(numerator: .power(ofTwo: NoisyVector.scaleBits + 1 + gridBits), denominator: scale)
    }
    /// In units of the largest value.
    fileprivate var relativeScale: Double { Double(sign: .plus, exponent: -NoisyVector.scaleBits - gridBits, significand: scale.double) }
    private var gridBits: Int { Int(grid.word!) }
    /// The largest magnitude of a noisy cell: the unit and 16 scales of noise.
    var bound: Int64 { 1 << gridBits + Int64(((scale << 4).dividedUp(by: .power(ofTwo: NoisyVector.scaleBits))).word!) }
    /// A value rounded at random to the grid.
    fileprivate func rounded(_ value: Int64, _ coins: Coins) throws -> Int64 {
        let cut = 52 - gridBits
        return try value >> cut + (coins.bernoulli(UInt64(bitPattern: value) << (64 - cut)) ? 1 : 0)
    }
    fileprivate func cells(_ count: Int, item: Int, value: Int64, _ coins: Coins) throws -> [UInt8] {
        let common = min(scale.trailingZeroBitCount, NoisyVector.scaleBits)
        let lowest = (numerator: scale >> common, denominator: Natural.power(ofTwo: NoisyVector.scaleBits - common))
        let bound = bound
        return try (0..<count).flatMap { cell in
            let noise = try coins.discreteLaplace(lowest.numerator, lowest.denominator)
            let magnitude = Int64(min(noise.magnitude.word ?? .max, 1 << 40))
            let noisy = (noise.isNegative ? -magnitude : magnitude) + (cell == item ? value : 0)
            return littleEndian(Int(min(max(noisy, -bound), bound)), 4)
        }
    }
}

/// This index among the d - 1 that are not `item`.
extension Int { fileprivate func except(_ item: Int) -> Int { self < item ? self : self + 1 } }
