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

/// JSON as RFC 8259 has it: no key twice in one object, no number beyond a double. `JSONSerialization` takes the last of two keys, and
/// `Codable` what it knows: a document must have one meaning.
enum Json: Equatable {
    case null, truth(Bool), number(Double), text(ExactText), list([Json]), object([ExactText: Json])
    /// Throws `invalid-document`.
    init(_ bytes: some Collection<UInt8>) throws {
        try ensure(ExactText(utf8: Array(bytes)).string != nil, invalidDocument, "document: is not in UTF-8")
        var reader = Reader(bytes: Array(bytes))
        guard let value = reader.value(Reader.deepest), reader.sign() == nil else {
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

/// Each function gives nil for what is no JSON.
private struct Reader {
    let bytes: [UInt8]
    var at = 0
    static let deepest = 500
    /// The next byte that is no blank, nil at the end.
    mutating func sign() -> UInt8? {
        while at < bytes.count, [0x20, 0x09, 0x0a, 0x0d].contains(bytes[at]) { at += 1 }
        return at < bytes.count ? bytes[at] : nil
    }

    private mutating func takes(_ sign: Unicode.Scalar) -> Bool {
        guard self.sign() == UInt8(ascii: sign) else { return false }
        at += 1
        return true
    }

    mutating func value(_ depth: Int) -> Json? {
        guard depth > 0, let sign = sign() else { return nil }
        switch Unicode.Scalar(sign) {
        case "{": return object(depth)
        case "[": return list(depth)
        case "\"": return string().map(Json.text)
        case "t": return word("true", .truth(true))
        case "f": return word("false", .truth(false))
        case "n": return word("null", .null)
        default:
            guard let end = numeralEnd(bytes, from: at, .json), let number = Double(text(to: end)), number.isFinite else { return nil }
            at = end
            return .number(number + 0) // a minus zero is zero
        }
    }
    private func text(to end: Int) -> String { String(decoding: bytes[at..<min(end, bytes.count)], as: UTF8.self) }
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

    private mutating func word(_ word: String, _ value: Json) -> Json? {
        guard text(to: at + word.utf8.count) == word else { return nil }
        at += word.utf8.count
        return value
    }

    private mutating func string() -> ExactText? {
        var text: [UInt8] = []
        at += 1
        while at < bytes.count, bytes[at] >= 0x20 {
            defer { at += 1 }
            if bytes[at] == UInt8(ascii: "\"") { return ExactText(utf8: text) }
            if bytes[at] != UInt8(ascii: "\\") {
                text.append(bytes[at])
            } else if let escaped = escaped() {
                text += escaped
            } else {
                return nil
            }
        }
        return nil
    }
    /// What is written by a backslash and the signs after it; the last of them is the place then.
    private mutating func escaped() -> [UInt8]? {
        at += 1
        guard at < bytes.count else { return nil }
        if let place = Array("\"\\/bfnrt".utf8).firstIndex(of: bytes[at]) { return [Array("\"\\/\u{8}\u{c}\n\r\t".utf8)[place]] }
        guard bytes[at] == UInt8(ascii: "u"), var point = unit(at + 1) else { return nil }
        at += 4
        if point >> 10 == 0x36, at + 2 < bytes.count, bytes[at + 1...at + 2].elementsEqual("\\u".utf8), let low = unit(at + 3),
            low >> 10 == 0x37
        {
            point = 0x10000 + (point & 0x3ff) << 10 + low & 0x3ff
            at += 6
        }
        func tail(_ shift: UInt32) -> UInt8 { 0x80 | UInt8(point >> shift & 0x3f) }
        switch point {
        case ..<0x80: return [UInt8(point)]
        case ..<0x800: return [0xc0 | UInt8(point >> 6), tail(0)]
        case ..<0x10000: return [0xe0 | UInt8(point >> 12), tail(6), tail(0)]
        default: return [0xf0 | UInt8(point >> 18), tail(12), tail(6), tail(0)]
        }
    }

    private func unit(_ start: Int) -> UInt32? {
        guard start + 4 <= bytes.count, bytes[start..<start + 4].allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit }) else { return nil }
        return UInt32(String(decoding: bytes[start..<start + 4], as: UTF8.self), radix: 16)
    }
}

/** JSON's numbers, or the texts that are numbers in records (docs/values.md). */ enum Grammar { case json, record }

/// Where the number that begins at `start` ends; nil where none begins there.
func numeralEnd(_ bytes: [UInt8], from start: Int, _ grammar: Grammar) -> Int? {
    var at = start
    func isAt(_ choices: String) -> Bool { at < bytes.count && choices.utf8.contains(bytes[at]) }
    func digits() -> Int {
        let first = at
        while at < bytes.count, bytes[at].isDigit { at += 1 }
        return at - first
    }
    if isAt(grammar == .json ? "-" : "+-") { at += 1 }
    let (first, whole) = (at, digits())
    if grammar == .json, whole == 0 || whole > 1 && bytes[first] == UInt8(ascii: "0") { return nil }
    var (end, fraction) = (at, 0)
    if isAt(".") {
        at += 1
        fraction = digits()
        if fraction > 0 || grammar == .record { end = at }
    }
    if whole + fraction == 0 { return nil }
    at = end
    if isAt("eE") {
        at += 1
        if isAt("+-") { at += 1 }
        if digits() > 0 { end = at }
    }
    return end
}
