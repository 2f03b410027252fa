import Foundation

/// A campaign that asks the same people time after time, each device once in its life: `count` windows, one after another.
struct Windows {
    let from: Date, count: Int
    /// In seconds.
    let length: TimeInterval
    private static let most = 4096, latestYear = 9000
    /// When devices of a window answer.
    func times(_ window: Int) -> Range<Date> { opens(window)..<opens(window + 1) }
    /// A window in words: its number, from 1 on.
    func name(_ window: Int) -> String { "window \(window + 1) of \(count)" }
    func opens(_ window: Int) -> Date { from + length * Double(window) }
    init(_ fields: Fields) throws {
        let from = try fields.present(fields.instant("from"), "from")
        let wrong = fields.refusal("length", "must be one number of weeks, days, hours or minutes (P7D, PT1H)")
        length = try Windows.seconds(Array(fields.name("length").utf8)) ?? raise(wrong)
        (self.from, count) = (from, try fields.whole("count", 2...Windows.most))
        let year = Int(try fields.present(fields.text("from"), "from").prefix(4))!
        let longest = Double(365 * (Windows.latestYear - year)) * 86_400
        try fields.require(length * Double(count) <= longest, "count", "lasts beyond the year \(Windows.latestYear)")
    }
    /// Of P, a number of 1 to 4 digits and W or D, or PT, such a number and H or M.
    private static func seconds(_ signs: [UInt8]) -> TimeInterval? {
        let isTime = signs.starts(with: "PT".utf8)
        let units: [UInt8: Double] = isTime ? [0x48: 3600, 0x4d: 60] : [0x57: 604_800, 0x44: 86_400]  // H, M; W, D
        let digits = signs.dropFirst(isTime ? 2 : 1).dropLast()
        let isRight = signs.starts(with: "P".utf8) && 1...4 ~= digits.count && digits.first != 0x30 && digits.allSatisfy(\.isDigit)
        return isRight ? units[signs.last!].map { $0 * Double(String(decoding: digits, as: UTF8.self))! } : nil
    }
}
