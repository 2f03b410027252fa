import Foundation

let longestText = 200
/// One JSON object, read key by key; every refusal names its place. An absent key and null are one.
final class Fields {
    private let members: [ExactText: Json], path: String
    private var asked: Set<ExactText> = []
    private init(_ value: Json?, _ path: String) throws {
        (members, self.path) = (try value?.members ?? raise(failure(invalidDocument, "\(path): must be an object")), path)
    }
    /// Reads one object with `read`; a key that it did not ask for is refused.
    static func read<T>(_ value: Json?, _ place: String, _ read: (Fields) throws -> T) throws -> T {
        let fields = try Fields(value, place)
        let result = try read(fields)
        let unknown = fields.members.keys.first { !fields.asked.contains($0) }
        return try unknown == nil ? result : raise(fields.refusal(unknown?.string ?? "a key", "is an unknown key"))
    }
    func place(_ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }
    func refusal(_ name: String, _ right: String) -> LdpError { failure(invalidDocument, "\(place(name)): \(right)") }
    func require(_ right: Bool, _ name: String, _ wanted: @autoclosure () -> String) throws { if !right { throw refusal(name, wanted()) } }
    func present<T>(_ value: T?, _ name: String) throws -> T { try value ?? raise(refusal(name, "is missing")) }
    func raw(_ name: String) -> Json? {
        asked.insert(ExactText(name))
        return members[ExactText(name)] == .null ? nil : members[ExactText(name)]
    }
    /// What `convert` makes of a value, which gives nil for what is not `right`; nil where there is none.
    private func converted<T>(_ name: String, _ right: @autoclosure () -> String, _ convert: (Json) throws -> T?) throws -> T? {
        try raw(name).map { try convert($0) ?? raise(refusal(name, right())) }
    }
    func absent(_ name: String) throws { try require(raw(name) == nil, name, "must be absent here") }
    func text(_ name: String, longest: Int = longestText) throws -> String? { try raw(name).map { try checkedText($0, name, longest) } }
    func optionalName(_ name: String) throws -> String? {
        let text = try text(name)
        try require(text?.unicodeScalars.allSatisfy(\.properties.isWhitespace) != true, name, "must be a non-empty text")
        return text
    }
    func name(_ name: String) throws -> String { try present(optionalName(name), name) }
    /// One of the words of an enumeration, or of some of them; the `other` where none is said.
    func choice<W: RawRepresentable<String> & CaseIterable>(_ name: String, among some: [W]? = nil, else other: W? = nil) throws -> W {
        let known = some ?? Array(W.allCases)
        return try present(optionalWord(name, known.map(\.rawValue)).flatMap { W(rawValue: $0) } ?? other, name)
    }
    /// One of some words.
    func word(_ name: String, _ known: [String]) throws -> String { try present(optionalWord(name, known), name) }
    private func optionalWord(_ name: String, _ known: [String]) throws -> String? {
        try converted(name, "must be one of \(known.joined(separator: ", "))") { value in known.first { value.text == ExactText($0) } }
    }
    func truth(_ name: String) throws -> Bool? {
        try converted(name, "must be true or false") { if case .truth(let truth) = $0 { truth } else { nil } }
    }
    func optionalNumber(_ name: String) throws -> Double? { try converted(name, "must be a number", \.number) }
    func number(_ name: String) throws -> Double { try present(optionalNumber(name), name) }
    func positive(_ name: String) throws -> Double {
        try converted(name, "must be above 0") { $0.number.flatMap { $0 > 0 ? $0 : nil } } ?? raise(refusal(name, "is missing"))
    }
    /// A JSON number's integer: 1, 1.0 and 1e0 are one number.
    func optionalWhole(_ name: String, _ range: ClosedRange<Int>) throws -> Int? {
        try converted(name, "must be an integer in \(range)") { value in
            value.number.flatMap { Int(exactly: $0) }.flatMap { range.contains($0) ? $0 : nil }
        }
    }
    func whole(_ name: String, _ range: ClosedRange<Int>) throws -> Int { try present(optionalWhole(name, range), name) }
    func list(_ name: String, _ sizes: ClosedRange<Int>) throws -> [Json] {
        let right = "must be a list of \(sizes) entries"
        return try present(converted(name, right) { $0.entries.flatMap { sizes.contains($0.count) ? $0 : nil } }, name)
    }
    /// A list of exactly `size` numbers.
    func row(_ name: String, _ size: Int) throws -> [Double] { try row(name, raw(name), size) }
    func row(_ name: String, _ value: Json?, _ size: Int) throws -> [Double] {
        let (entries, row) = (value?.entries ?? [], value?.entries?.compactMap(\.number) ?? [])
        return try entries.count == size && row.count == size ? row : raise(refusal(name, "must be a list of \(size) numbers"))
    }
    /// A list of different, non-empty texts.
    func texts(_ name: String, _ sizes: ClosedRange<Int>) throws -> [String] {
        let texts = try list(name, sizes).map { try checkedText($0, name) }
        try require(!texts.contains("") && areDifferent(texts), name, "must be different non-empty texts")
        return texts
    }
    /// Texts that stay different when accents are written in one way.
    func declared(_ name: String, most: Int) throws -> [String] {
        let texts = try texts(name, 2...most)
        try require(areDifferent(texts.map(composed)), name, "holds two texts that are one in Unicode's form NFC")
        return texts
    }
    /// A time in UTC that exists, such as 2027-01-01T00:00:00Z.
    func instant(_ name: String) throws -> Date? {
        try converted(name, "must be a time such as 2027-01-01T00:00:00Z") { $0.text?.string.flatMap(Date.init(document:)) }
    }
    private func checkedText(_ value: Json, _ name: String, _ longest: Int = longestText) throws -> String {
        let text = try (value.text ?? raise(refusal(name, "must be a text"))).string ?? "\n"
        try require(!text.unicodeScalars.contains(where: isNoText), name, "holds what people cannot be shown")
        try require(text.unicodeScalars.count <= longest, name, "must have at most \(longest) characters")
        return text
    }
}

/// Control characters, ends of lines, and marks of writing direction.
private func isNoText(_ sign: Unicode.Scalar) -> Bool {
    switch sign.value {
    case ..<0x20, 0x7f...0x9f, 0x61c, 0x200e...0x200f, 0x2028...0x202e, 0x2066...0x2069: return true
    default: return false
    }
}
func areDifferent(_ texts: [String]) -> Bool { Set(texts.map { ExactText($0) }).count == texts.count }
/// A text in Unicode's form NFC: an accent may be a character of its own, or one with the letter below it.
func composed(_ text: String) -> String { text.utf8.allSatisfy { $0 < 0x80 } ? text : text.precomposedStringWithCanonicalMapping }

extension Date {
    /// A time that exists, as documents write it; nil for any other text.
    init?(document text: String) {
        guard text.utf8.map({ $0.isDigit ? UInt8(ascii: "0") : $0 }) == Array("0000-00-00T00:00:00Z".utf8) else { return nil }
        let numbers = text.split { !$0.isNumber }.map { Int($0)! }
        self.init(year: numbers[0], month: numbers[1], day: numbers[2], time: Array(numbers[3...]))
    }
    /// A time of the Gregorian calendar, in UTC; nil where there is none.
    init?(year: Int, month: Int, day: Int, time: [Int]) {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard year > 0, 1...12 ~= month, 1...lengths[month - 1] ~= day, time[0] < 24, time[1] < 60, time[2] < 60 else { return nil }
        let (years, days) = (year - 1, lengths[..<(month - 1)].reduce(0, +) + day - 719_163)
        let leapDays = years / 4 - years / 100 + years / 400
        let seconds = time[0] * 3600 + time[1] * 60 + time[2]
        self.init(timeIntervalSince1970: Double((365 * years + leapDays + days) * 86_400 + seconds))
    }
}
