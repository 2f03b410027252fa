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
    case null
    case truth(Bool)
    case number(Double)
    case text(ExactText)
    case list([Json])
    case object([ExactText: Json])
    /// Throws `invalid-document`.
    init(_ bytes: some Collection<UInt8>) throws {
        try ensure(ExactText(utf8: Array(bytes)).string != nil, invalidDocument, "document: is not in UTF-8")
        var reader = Reader(bytes: Array(bytes))
        let read = reader.value(Reader.deepest).flatMap { reader.sign() == nil ? $0 : nil }
        self = try read ?? raise(failure(invalidDocument, "document: is not JSON, or holds a key twice, or a number beyond a double"))
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
    private mutating func takes(_ wanted: Unicode.Scalar) -> Bool {
        let isThere = sign() == UInt8(ascii: wanted)
        at += isThere ? 1 : 0
        return isThere
    }
    mutating func value(_ depth: Int) -> Json? {
        guard depth > 0, let sign = sign() else { return nil }
        switch Unicode.Scalar(sign) {
        case "{":
            var members: [ExactText: Json] = [:]
            return listed("}") {
                guard $0.sign() == UInt8(ascii: "\""), let name = $0.string(), members[name] == nil, $0.takes(":") else { return false }
                members[name] = $0.value(depth - 1)
                return members[name] != nil
            } ? .object(members) : nil
        case "[":
            var entries: [Json] = []
            return listed("]") { reader in
                guard let value = reader.value(depth - 1) else { return false }
                entries.append(value)
                return true
            } ? .list(entries) : nil
        case "\"": return string().map(Json.text)
        case "t": return word("true", .truth(true))
        case "f": return word("false", .truth(false))
        case "n": return word("null", .null)
        default:
            guard let end = numeralEnd(bytes, from: at, .json), let number = Double(text(to: end)), number.isFinite else { return nil }
            at = end
            return .number(number + 0)  // a minus zero is zero
        }
    }
    /// Whether what `member` reads stands here, any number of times, up to `close`.
    private mutating func listed(_ close: Unicode.Scalar, _ member: (inout Reader) -> Bool) -> Bool {
        at += 1
        if takes(close) { return true }
        repeat { if !member(&self) { return false } } while takes(",")
        return takes(close)
    }
    private func text(to end: Int) -> String { String(decoding: bytes[at..<min(end, bytes.count)], as: UTF8.self) }
    private mutating func word(_ word: String, _ value: Json) -> Json? {
        defer { at += word.utf8.count }
        return text(to: at + word.utf8.count) == word ? value : nil
    }
    private mutating func string() -> ExactText? {
        var text: [UInt8] = []
        at += 1
        while at < bytes.count, bytes[at] >= 0x20 {
            defer { at += 1 }
            if bytes[at] == UInt8(ascii: "\"") { return ExactText(utf8: text) }
            guard let sign = bytes[at] == UInt8(ascii: "\\") ? escaped() : [bytes[at]] else { return nil }
            text += sign
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
        let isPaired = point >> 10 == 0x36 && at + 2 < bytes.count && bytes[at + 1...at + 2].elementsEqual("\\u".utf8)
        if isPaired, let low = unit(at + 3), low >> 10 == 0x37 { (point, at) = (0x10000 + (point & 0x3ff) << 10 + low & 0x3ff, at + 6) }
        func tail(_ shift: UInt32) -> UInt8 { 0x80 | UInt8(point >> shift & 0x3f) }
        switch point {
        case ..<0x80: return [UInt8(point)]
        case ..<0x800: return [0xc0 | UInt8(point >> 6), tail(0)]
        case ..<0x10000: return [0xe0 | UInt8(point >> 12), tail(6), tail(0)]
        default: return [0xf0 | UInt8(point >> 18), tail(12), tail(6), tail(0)]
        }
    }
    private func unit(_ start: Int) -> UInt32? {
        let digits = bytes.dropFirst(start).prefix(4)
        let isRight = digits.count == 4 && digits.allSatisfy { Character(Unicode.Scalar($0)).isHexDigit }
        return isRight ? UInt32(String(decoding: digits, as: UTF8.self), radix: 16) : nil
    }
}

/// JSON's numbers, or the texts that are numbers in records (docs/values.md).
enum Grammar { case json, record }

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
