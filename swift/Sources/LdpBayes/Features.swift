let (mostFeatures, mostCells, mostValues, mostClasses, mostWeight) = (1000, 65536, 16384, 1024, 65536)
private let missingValue = "missing"

/// The class to learn.
public struct Label {
    public let name: String, classes: [String]
    private let declared: Declared
    init(name: String, classes: [String]) { (self.name, self.classes, declared) = (name, classes, Declared(classes)) }
    /// The position of the class that a value means; nil for one that is not declared.
    func index(of value: Meaning) -> Int? { declared[value] }
    func isLike(_ other: Label) -> Bool { [name].exact == [other.name].exact && classes.exact == other.classes.exact }
}

extension Array where Element == String { var exact: [ExactText] { map { ExactText($0) } } }

/// Something that a campaign knows of people, by the name that it has in records.
public struct Feature {
    /// Its values: some texts, or numbers, clipped to `low` and `high`; with `bins` they are discretised.
    public enum Kind: Equatable { case categorical([String]), continuous(low: Double, high: Double, bins: Int?) }
    /** The key in a record. */ public let name: String
    public let kind: Kind
    /** Whether a record may be without a value, which then has a cell of its own. */ public let missing: Bool
    private let declared: Declared?
    init(name: String, kind: Kind, missing: Bool) {
        (self.name, self.kind, self.missing) = (name, kind, missing)
        if case .categorical(let values) = kind { declared = Declared(values) } else { declared = nil }
    }
    /// Values of a discrete feature, ends of one that is not.
    var size: Int { if case .categorical(let values) = kind { values.count } else { bins ?? 2 } }
    private var bins: Int? { if case .continuous(_, _, let bins) = kind { bins } else { nil } }
    /// What there is to answer: the values, and after them that there is none where that may be.
    var cells: Int { missing ? size + 1 : size }
    var isContinuous: Bool { declared == nil }
    var isGaussian: Bool { isContinuous && bins == nil }
    /** Whether `missing` is one of the values. */ var listsMissing: Bool { declared?[missingValue] != nil }
    /// The index of a value or the bin of a number, of equal width and half-open; of a missing or undeclared value that of `missing`
    /// where it is declared, else nil.
    func index(of value: Meaning) -> Int? {
        if let declared { return declared[value] ?? declared[missingValue] }
        guard let number = value.number else { return nil }
        let (low, span) = (bounds.low, bounds.high - bounds.low)
        return (1..<size).first { number < low + span * Double($0) / Double(size) }.map { $0 - 1 } ?? size - 1
    }
    var bounds: (low: Double, high: Double) { if case .continuous(let low, let high, _) = kind { (low, high) } else { (0, 0) } }
    func clipped(_ number: Double) -> Double { min(max(number, bounds.low), bounds.high) }
    /// T = 2 (x - low) / (high - low) - 1 in [-1, 1], x clipped first.
    func scaled(_ number: Double) -> Double { min(max(2 * ((clipped(number) - bounds.low) / (bounds.high - bounds.low)) - 1, -1), 1) }
    /// Whether two features with one name mean the same values.
    func isLike(_ other: Feature) -> Bool {
        guard ExactText(name) == ExactText(other.name) else { return false }
        if case .categorical(let values) = kind, case .categorical(let others) = other.kind { return values.exact == others.exact }
        return kind == other.kind
    }
}

enum FeatureKind: String, CaseIterable { case categorical, continuous }

extension Fields {
    /// A declared feature, in a campaign of `classes` classes.
    static func feature(_ value: Json?, _ place: String, classes: Int) throws -> Feature {
        try read(value, place) { fields in
            let name = try fields.name("name")
            let kind = try fields.choice("kind") as FeatureKind
            _ = try fields.optionalWhole("weight", 1...mostWeight)
            let said = try fields.truth("missing")
            let feature: Feature
            if kind == .categorical {
                let values = try fields.declared("values", most: mostValues)
                let listed = values.exact.contains(ExactText(missingValue))
                try fields.require(!(listed && said == true), "missing", "is one of the values; leave this out")
                try fields.require(!(try fields.truth("ordered") == true && listed), "ordered", "'missing' has no place in an order")
                feature = Feature(name: name, kind: .categorical(values), missing: said != false && !listed)
            } else {
                feature = try fields.continuous(name, missing: said != false, bins: try fields.optionalWhole("bins", 2...mostValues))
            }
            try fields.require(feature.cells * classes <= mostCells, "values", "are too many for one question")
            return feature
        }
    }
    func continuous(_ name: String, missing: Bool, bins: Int?) throws -> Feature {
        let (low, high) = (try number("low"), try number("high"))
        // Squares of their distance, which variances are made of, are still doubles.
        try require(1e-150...1e150 ~= high - low, "high", "must be above low, by 1e-150 to 1e150")
        let step = max(abs(low), abs(high)).ulp
        try require(bins.map { (high - low) / Double($0) >= 4 * step } ?? true, "bins", "are narrower than a double resolves")
        return Feature(name: name, kind: .continuous(low: low, high: high, bins: bins), missing: missing)
    }
    /// A list of declared features whose names, with `others`, are all different.
    func features(_ name: String, _ sizes: ClosedRange<Int>, classes: Int, others: [String]) throws -> [Feature] {
        let features = try list(name, sizes).enumerated().map { try Fields.feature($1, place("\(name)[\($0)]"), classes: classes) }
        try require(areDifferent(others + features.map(\.name)), name, "must have different names")
        return features
    }
}
