/// A text as its code points in UTF-8. Swift's `String` takes two spellings of one accent for equal, and holds no half of a surrogate
/// pair, which JSON can write: here it has the three bytes that UTF-8 would have for it.
struct ExactText: Hashable {
    let utf8: [UInt8]

    init(utf8: [UInt8]) { self.utf8 = utf8 }
    init(_ text: some StringProtocol) { utf8 = Array(text.utf8) }

    /// Nil for a text with half of a surrogate pair.
    var string: String? {
        let text = String(decoding: utf8, as: UTF8.self)
        return text.utf8.elementsEqual(utf8) ? text : nil
    }
}

/// JSON as RFC 8259 has it: no key twice in one object, no number beyond a double.
///
/// `JSONSerialization` takes the last of two keys, and `Codable` what it knows: a document must have one meaning.
enum Json: Equatable {
    case null
    case truth(Bool)
    case number(Double)
    case text(ExactText)
    case list([Json])
    case object([ExactText: Json])

    /// Throws `invalid-document`.
    init(_ bytes: some Collection<UInt8>) throws {
        let bytes = Array(bytes)
        let text = String(decoding: bytes, as: UTF8.self)
        try ensure(text.utf8.elementsEqual(bytes), invalidDocument, "document: is not in UTF-8")
        var reader = Reader(bytes: bytes)
        guard let value = reader.document() else {
            throw failure(invalidDocument, "document: is not JSON, or holds a key twice, or a number beyond a double")
        }
        self = value
    }

    var members: [ExactText: Json]? { if case .object(let members) = self { members } else { nil } }
    var entries: [Json]? { if case .list(let entries) = self { entries } else { nil } }
    var number: Double? { if case .number(let number) = self { number } else { nil } }
    var text: ExactText? { if case .text(let text) = self { text } else { nil } }

    subscript(name: String) -> Json? { members?[ExactText(name)] }
}

private struct Reader {
    let bytes: [UInt8]
    var at = 0
    static let deepest = 500

    mutating func document() -> Json? {
        guard let value = value(Self.deepest), sign() == nil else { return nil }
        return value
    }

    /// The next byte that is no blank, nil at the end.
    private mutating func sign() -> UInt8? {
        while at < bytes.count, [0x20, 0x09, 0x0a, 0x0d].contains(bytes[at]) { at += 1 }
        return at < bytes.count ? bytes[at] : nil
    }

    private mutating func takes(_ sign: Unicode.Scalar) -> Bool {
        guard self.sign() == UInt8(ascii: sign) else { return false }
        at += 1
        return true
    }

    private mutating func value(_ depth: Int) -> Json? {
        guard depth > 0, let sign = sign() else { return nil }
        switch sign {
        case UInt8(ascii: "{"): return object(depth)
        case UInt8(ascii: "["): return list(depth)
        case UInt8(ascii: "\""): return string().map(Json.text)
        case UInt8(ascii: "t"): return word("true", .truth(true))
        case UInt8(ascii: "f"): return word("false", .truth(false))
        case UInt8(ascii: "n"): return word("null", .null)
        default: return number()
        }
    }

    private mutating func object(_ depth: Int) -> Json? {
        var members: [ExactText: Json] = [:]
        at += 1
        if takes("}") { return .object(members) }
        repeat {
            guard sign() == UInt8(ascii: "\""), let name = string(), takes(":"), members[name] == nil, let value = value(depth - 1)
            else { return nil }
            members[name] = value
        } while takes(",")
        return takes("}") ? .object(members) : nil
    }

    private mutating func list(_ depth: Int) -> Json? {
        var entries: [Json] = []
        at += 1
        if takes("]") { return .list(entries) }
        repeat {
            guard let value = value(depth - 1) else { return nil }
            entries.append(value)
        } while takes(",")
        return takes("]") ? .list(entries) : nil
    }

    private mutating func word(_ word: StaticString, _ value: Json) -> Json? {
        let end = at + word.utf8CodeUnitCount
        guard end <= bytes.count, "\(word)".utf8.elementsEqual(bytes[at..<end]) else { return nil }
        at = end
        return value
    }

    private mutating func number() -> Json? {
        guard let end = numeralEnd(bytes, from: at, .json) else { return nil }
        defer { at = end }
        guard let number = Double(String(decoding: bytes[at..<end], as: UTF8.self)), number.isFinite else { return nil }
        return .number(number + 0) // a minus zero is zero
    }

    private mutating func string() -> ExactText? {
        var text: [UInt8] = []
        at += 1
        while at < bytes.count {
            let byte = bytes[at]
            at += 1
            switch byte {
            case UInt8(ascii: "\""): return ExactText(utf8: text)
            case UInt8(ascii: "\\"): guard escaped(into: &text) else { return nil }
            case ..<0x20: return nil
            default: text.append(byte)
            }
        }
        return nil
    }

    private mutating func escaped(into text: inout [UInt8]) -> Bool {
        guard at < bytes.count else { return false }
        let sign = bytes[at]
        at += 1
        if let place = Array("\"\\/bfnrt".utf8).firstIndex(of: sign) {
            text.append(Array("\"\\/\u{8}\u{c}\n\r\t".utf8)[place])
            return true
        }
        guard sign == UInt8(ascii: "u"), var point = unit() else { return false }
        if point & 0xfc00 == 0xd800, at + 1 < bytes.count, bytes[at] == UInt8(ascii: "\\"), bytes[at + 1] == UInt8(ascii: "u") {
            let before = at
            at += 2
            guard let low = unit() else { return false }
            if low & 0xfc00 == 0xdc00 { point = 0x10000 + (point & 0x3ff) << 10 + low & 0x3ff } else { at = before }
        }
        switch point {
        case ..<0x80: text.append(UInt8(point))
        case ..<0x800: text += [0xc0 | UInt8(point >> 6), tail(point)]
        case ..<0x10000: text += [0xe0 | UInt8(point >> 12), tail(point >> 6), tail(point)]
        default: text += [0xf0 | UInt8(point >> 18), tail(point >> 12), tail(point >> 6), tail(point)]
        }
        return true
    }

    private func tail(_ point: UInt32) -> UInt8 { 0x80 | UInt8(point & 0x3f) }

    private mutating func unit() -> UInt32? {
        guard at + 4 <= bytes.count else { return nil }
        defer { at += 4 }
        return bytes[at..<at + 4].reduce(UInt32?(0)) { sum, byte in
            guard let sum, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { return nil }
            return sum << 4 | UInt32(digit)
        }
    }
}

/// JSON's numbers, or the texts that are numbers in records (docs/values.md).
enum Grammar { case json, record }

/// Where the number that begins at `start` ends; nil where none begins there.
func numeralEnd(_ bytes: [UInt8], from start: Int, _ grammar: Grammar) -> Int? {
    var at = start
    func sign(_ choices: StaticString) -> Bool { at < bytes.count && "\(choices)".utf8.contains(bytes[at]) }
    func digits() -> Int {
        let first = at
        while at < bytes.count, bytes[at].isDigit { at += 1 }
        return at - first
    }
    if sign(grammar == .json ? "-" : "+-") { at += 1 }
    let (first, whole) = (at, digits())
    if grammar == .json, whole == 0 || whole > 1 && bytes[first] == UInt8(ascii: "0") { return nil }
    let point = at
    if sign(".") {
        at += 1
        let fraction = digits()
        if fraction == 0, grammar == .json || whole == 0 { at = point }
    }
    if grammar == .record, whole == 0, at == point { return nil }
    let end = at
    if sign("eE") {
        at += 1
        if sign("+-") { at += 1 }
        if digits() == 0 { at = end }
    }
    return at
}
