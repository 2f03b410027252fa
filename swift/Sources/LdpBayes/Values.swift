import Foundation

/// What a record holds, by the names of features: texts, numbers, truth values, or nothing. Names are compared by their code points,
/// unlike those of a dictionary. What is no text, number or truth value counts as missing; ``DeviceCampaign/preview(_:label:)`` finds it.
public struct Record: Sendable, ExpressibleByDictionaryLiteral {
    private var values: [ExactText: Meaning]
    public init(dictionaryLiteral elements: (String, Any?)...) { self.init(elements) }
    /// A record of a dictionary, such as one of `JSONSerialization`.
    public init(_ members: [String: Any?]) { self.init(members.map { ($0.key, $0.value) }) }
    private init(_ members: [(String, Any?)]) { values = Dictionary(members.map { (ExactText($0.0), Meaning($0.1)) }) { _, last in last } }
    subscript(name: String) -> Meaning { values[ExactText(name)] ?? .nothing }
    var names: [String] { values.keys.compactMap(\.string).sorted() }
}

/// The meaning of a record's value, by value and never by type (docs/values.md). Nothing throws: what cannot be read is missing.
enum Meaning {
    case nothing
    case text(String)
    case number(Double)
    /// A whole number's decimal digits, a minus before them or not.
    case whole(String)
    init(_ value: Any?) {
        switch value {
        case let value as Meaning: self = value
        case let text as any StringProtocol: self = .text(String(text))
        case let whole as any BinaryInteger: self = .whole("\(whole)")
        case let number as any BinaryFloatingPoint: self = .number(Double(number))
        // Below, Foundation's numbers: what they are cast to is not always what they are.
        case let decimal as NSDecimalNumber: self.init(decimal.decimalValue)
        case let decimal as Decimal: self.init(decimal)
        case let truth as Bool: self = .whole(truth ? "1" : "0")
        case let number as NSNumber:
            self = ["f", "d"].contains(String(cString: number.objCType)) ? .number(number.doubleValue) : .whole(number.stringValue)
        case let text as NSString: self = .text(text as String)
        default: self = .nothing
        }
    }
    private init(_ decimal: Decimal) {
        self = decimal.isNaN ? .nothing : "\(decimal)".contains(".") ? .number(Double("\(decimal)") ?? .nan) : .whole("\(decimal)")
    }
    /// The double nearest to a number, infinities included; nil for anything that is no number.
    var number: Double? {
        switch self {
        case .nothing: return nil
        case .number(let number): return number.isNaN ? nil : number
        case .whole(let digits): return Double(digits)
        case .text(let text):
            if text.utf8.count > longestText { return nil }
            let numeral = Array(text.drop { " \t".contains($0) }.utf8)
            guard let end = numeralEnd(numeral, from: 0, .record), numeral[end...].allSatisfy(" \t".utf8.contains) else { return nil }
            return Double(String(decoding: numeral[..<end], as: UTF8.self))
        }
    }
    /// The text that a value is compared by; nil where it has none.
    var text: ExactText? {
        switch self {
        case .nothing: return nil
        case .text(let text): return ExactText(composed(text))
        case .whole(let digits): return digits.utf8.count <= longestText + (digits.first == "-" ? 1 : 0) ? ExactText(digits) : nil
        case .number(let number):
            if !number.isFinite { return nil }
            if number == number.rounded() { return Meaning.whole(String(format: "%.0f", number + 0)).text }
            let written = plain(number)
            return written.utf8.count <= longestText ? ExactText(written) : nil
        }
    }
}

/// The shortest decimal that is this double, which is not whole, without an exponent.
private func plain(_ number: Double) -> String {
    let parts = number.description.split(separator: "e")
    guard parts.count > 1, let exponent = Int(parts[1]) else { return number.description }
    let digits = parts[0].filter(\.isNumber)
    return (number < 0 ? "-0." : "0.") + String(repeating: "0", count: -exponent - 1) + digits
}

/// The digits of a text that is a whole number with zeros behind a point; nil for any other text.
private func wholeDigits(_ text: String) -> ExactText? {
    let parts = Array(text.utf8).split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[1].isEmpty, parts[1].allSatisfy({ $0 == UInt8(ascii: "0") }) else { return nil }
    let digits = parts[0].first == UInt8(ascii: "-") ? parts[0].dropFirst() : parts[0]
    guard !digits.isEmpty, digits.allSatisfy((UInt8(ascii: "0")...UInt8(ascii: "9")).contains) else { return nil }
    return ExactText(String(decoding: parts[0], as: UTF8.self))
}

/// The classes of a label, or the values of a feature.
struct Declared {
    private var positions: [ExactText: Int] = [:]
    init(_ texts: [String]) {
        for (position, text) in texts.enumerated() { positions[ExactText(composed(text))] = position }
        // Where 1 is not declared itself, a declared 1.0 is another name of it, or else a truth value.
        for (position, text) in texts.enumerated() {
            if let whole = wholeDigits(composed(text)), positions[whole] == nil { positions[whole] = position }
        }
        for (digit, names) in [("1", ["true", "True"]), ("0", ["false", "False"])] where positions[ExactText(digit)] == nil {
            positions[ExactText(digit)] = positions[ExactText(names[0])] ?? positions[ExactText(names[1])]
        }
    }
    /// The position of the text that a value means; nil for anything else.
    subscript(value: Meaning) -> Int? { value.text.flatMap { positions[$0] ?? $0.string.flatMap(wholeDigits).flatMap { positions[$0] } } }
    subscript(text: String) -> Int? { positions[ExactText(text)] }
}
