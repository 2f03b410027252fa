let (mostFeatures, mostCells, mostValues, mostClasses, mostWeight) = (1000, 65536, 16384, 1024, 65536)
private let missingValue = "missing"

/// The class to learn.
public struct Label: Sendable {
    public let name: String, classes: [String]
    private let declared: Declared
    init(name: String, classes: [String]) { (self.name, self.classes, declared) = (name, classes, Declared(classes)) }
    /// The position of the class that a value means; nil for one that is not declared.
    func index(of value: Meaning) -> Int? { if case .nothing = value { declared[""] } else { declared[value] } }
    func isLike(_ other: Label) -> Bool { [name].exact == [other.name].exact && classes.exact == other.classes.exact }
}

extension Array where Element == String { var exact: [ExactText] { map { ExactText($0) } } }

/// Something that a campaign knows of people, by the name that it has in records.
public struct Feature: Sendable {
    /// The key in a record.
    public let name: String
    /// Whether a record may be without a value, which then has a cell of its own.
    public let missing: Bool
    let values: any Values
    /// The values, where they are some texts.
    public var texts: [String]? { values.texts }
    /// The bounds, where the values are numbers.
    public var bounds: ClosedRange<Double>? { numbers.map { $0.low...$0.high } }
    var size: Int { values.size }
    /// The names of what there is to answer.
    var cellNames: [String] { missing ? values.names + [missingValue] : values.names }
    /// What there is to answer: the values, and after them that there is none where that may be.
    var cells: Int { missing ? size + 1 : size }
    var numbers: Numbers? { values.numbers }
    /// Its numbers where it is asked as moments: by value and square, and modelled as Gaussian.
    var moments: Numbers? { numbers.flatMap { $0.bins == nil ? $0 : nil } }
    func index(of value: Meaning) -> Int? { values.index(of: value) }
    /// Whether two features with one name mean the same values.
    func isLike(_ other: Feature) -> Bool { ExactText(name) == ExactText(other.name) && values.isLike(other.values) }
}

/// What the values of a feature are: all that is asked of its kind, which nobody else knows by its name.
protocol Values: Sendable {
    /// Their number, of those that are asked as cells; 2, the ends, of others.
    var size: Int { get }
    /// Themselves, where they are numbers.
    var numbers: Numbers? { get }
    /// Themselves, where they are texts.
    var texts: [String]? { get }
    /// In words, by index; each means its value, except where they are ranges of a number.
    var names: [String] { get }
    /// The index of what a record holds; nil for what is no value.
    func index(of value: Meaning) -> Int?
    func isLike(_ other: any Values) -> Bool
    /// What a value is, for people; and what is wrong with one that is there, behind the value itself, nil where nothing is.
    var wanted: String { get }
    func wrong(with value: Meaning) -> String?
}

extension Values {
    var numbers: Numbers? { nil }
    var texts: [String]? { nil }
}

/// Some texts.
struct Categories: Values {
    let texts: [String]?
    let names: [String]
    private let declared: Declared
    init(_ texts: [String]) { (self.texts, names, declared) = (texts, texts, Declared(texts)) }
    var size: Int { names.count }
    /// Of a missing or undeclared value the index of `missing` where it is declared.
    func index(of value: Meaning) -> Int? { declared[value] ?? declared[missingValue] }
    func isLike(_ other: any Values) -> Bool { other.texts?.exact == names.exact }
    var wanted: String { "one of \(listed(names))" }
    func wrong(with value: Meaning) -> String? { declared[value] == nil ? "is not declared" : nil }
}

/// Numbers, clipped to `low` and `high`; with `bins` they are discretised, in equal widths or between `edges`.
struct Numbers: Values, Equatable {
    let low: Double, high: Double, bins: Int?, edges: [Double]?
    var size: Int { bins ?? 2 }
    var numbers: Numbers? { self }
    var span: Double { high - low }
    var names: [String] {
        let edges = ([low] + (1..<size).map(edge) + [high]).map(general)
        return (0..<size).map { "[\(edges[$0]), \(edges[$0 + 1])\($0 < size - 1 ? ")" : "]")" }
    }
    private func edge(_ bin: Int) -> Double { edges?[bin] ?? low + span * Double(bin) / Double(size) }
    /// The bin of a number, half-open.
    func index(of value: Meaning) -> Int? {
        guard let number = value.number else { return nil }
        return (1..<size).first { number < edge($0) }.map { $0 - 1 } ?? size - 1
    }
    func isLike(_ other: any Values) -> Bool { other.numbers == self }
    func clipped(_ number: Double) -> Double { min(max(number, low), high) }
    /// T = 2 (x - low) / (high - low) - 1 in [-1, 1], x clipped first.
    func scaled(_ number: Double) -> Double { min(max(2 * ((clipped(number) - low) / span) - 1, -1), 1) }
    var wanted: String { "a number from \(low) to \(high)" }
    func wrong(with value: Meaning) -> String? { value.number == nil ? "is no number" : nil }
}

/// Reads a feature by its name, as a document declares it, and as a model that has a table of it says it.
typealias FeatureKind = (declared: @Sendable (Fields, String) throws -> Feature, modelled: @Sendable (Fields, String) throws -> Feature)

extension Feature {
    /// The kinds that documents may declare: the one table.
    static let kinds: [String: FeatureKind] = [
        "categorical": (
            { try $0.categories($1) },
            { Feature(name: $1, missing: true, values: Categories(try $0.texts("values", 1...mostValues))) }
        ),
        "continuous": (
            { fields, name in
                let missing = try fields.truth("missing") != false
                return try fields.binned(name, missing: missing, bins: try fields.optionalWhole("bins", 2...mostValues))
            },
            { try $0.binned($1, missing: true, bins: try $0.whole("bins", 2...mostValues)) }
        ),
    ]
}

extension Fields {
    /// A declared feature, in a campaign of `classes` classes.
    static func feature(_ value: Json?, _ place: String, classes: Int) throws -> Feature {
        try read(value, place) { fields in
            let name = try fields.name("name")
            let kind = Feature.kinds[try fields.word("kind", Feature.kinds.keys.sorted())]!
            _ = try fields.optionalWhole("weight", 1...mostWeight)
            let feature = try kind.declared(fields, name)
            try fields.require(feature.cells * classes <= mostCells, "values", "are too many for one question")
            return feature
        }
    }
    fileprivate func categories(_ name: String) throws -> Feature {
        let (values, said) = (try declared("values", most: mostValues), try truth("missing"))
        let listed = values.exact.contains(ExactText(missingValue))
        try require(!(listed && said == true), "missing", "is one of the values; leave this out")
        try require(!(try truth("ordered") == true && listed), "ordered", "'missing' has no place in an order")
        return Feature(name: name, missing: said != false && !listed, values: Categories(values))
    }
    fileprivate func binned(_ name: String, missing: Bool, bins: Int?) throws -> Feature {
        guard raw("edges") != nil else { return try numbers(name, missing: missing, bins: bins) }
        let edges = try row("edges", try present(bins, "bins") + 1)
        let feature = try numbers(name, missing: missing, bins: bins, edges: edges)
        let rise = zip(edges, edges.dropFirst()).allSatisfy { $0 < $1 }
        try require(rise && edges.first == feature.numbers?.low && edges.last == feature.numbers?.high, "edges", "must rise from low to high")
        return feature
    }
    func numbers(_ name: String, missing: Bool, bins: Int?, edges: [Double]? = nil) throws -> Feature {
        let numbers = Numbers(low: try number("low"), high: try number("high"), bins: bins, edges: edges)
        // Squares of their distance, which variances are made of, are still doubles.
        try require(1e-150...1e150 ~= numbers.span, "high", "must be above low, by 1e-150 to 1e150")
        let step = max(abs(numbers.low), abs(numbers.high)).ulp
        try require(bins.map { numbers.span / Double($0) >= 4 * step } ?? true, "bins", "are narrower than a double resolves")
        return Feature(name: name, missing: missing, values: numbers)
    }
    /// A list of declared features whose names, with `others`, are all different.
    func features(_ name: String, _ sizes: ClosedRange<Int>, classes: Int, others: [String]) throws -> [Feature] {
        let features = try list(name, sizes).enumerated().map { try Fields.feature($1, place("\(name)[\($0)]"), classes: classes) }
        try require(areDifferent(others + features.map(\.name)), name, "must have different names")
        return features
    }
}
