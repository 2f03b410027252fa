import Foundation

/// A campaign that asks the same people time after time, each device once in its life: `count` windows, one after another.
public struct Windows {
    public let from: Date
    /** In seconds. */ public let length: TimeInterval
    public let count: Int
    static let most = 4096
    private static let latestYear = 9000
    /** When devices of a window answer. */ func times(_ window: Int) -> Range<Date> { opens(window)..<opens(window + 1) }
    func opens(_ window: Int) -> Date { from + length * Double(window) }
    init(_ fields: Fields) throws {
        let from = try fields.present(fields.instant("from"), "from")
        guard let length = Windows.seconds(try fields.name("length")) else {
            throw fields.refusal("length", "must be one number of weeks, days, hours or minutes (P7D, PT1H)")
        }
        (self.from, self.length, count) = (from, length, try fields.whole("count", 2...Windows.most))
        let year = Int(try fields.present(fields.text("from"), "from").prefix(4))!
        let longest = Double(365 * (Windows.latestYear - year)) * 86_400
        try fields.require(length * Double(count) <= longest, "count", "lasts beyond the year \(Windows.latestYear)")
    }
    /// Of P, a number of 1 to 4 digits and W or D, or PT, such a number and H or M.
    private static func seconds(_ text: String) -> TimeInterval? {
        var signs = Array(text.utf8)
        guard signs.count >= 3, signs.removeFirst() == UInt8(ascii: "P") else { return nil }
        let units: [Unicode.Scalar: TimeInterval]
        if signs[0] == UInt8(ascii: "T") {
            signs.removeFirst()
            units = ["H": 3600, "M": 60]
        } else {
            units = ["W": 604_800, "D": 86_400]
        }
        guard let unit = units[Unicode.Scalar(signs.removeLast())], 1...4 ~= signs.count, signs[0] != UInt8(ascii: "0"),
            signs.allSatisfy(\.isDigit), let number = Double(String(decoding: signs, as: UTF8.self))
        else { return nil }
        return number * unit
    }
}
