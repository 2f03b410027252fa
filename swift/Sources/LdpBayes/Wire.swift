// Reports and uploads: their ids, and their one encoding in msgpack.
let uploadVersion: UInt8 = 2
private let mostPadded = 1 << 19
let mediaType = "application/vnd.ldp-bayes.reports+msgpack"

/// One perturbed answer.
struct Report {
    /// The index of its question, and 16 bytes, the same at every call.
    let question: Int, id: [UInt8], payload: [UInt8]
    /// What was perturbed; it must not leave the device.
    var item: Item?
}

func reportId(_ secret: [UInt8], _ campaign: Campaign, _ group: Int) -> [UInt8] { Array(hmac(secret, campaign.slot(group))[..<16]) }
/// The one encoding of one device's reports to a campaign, each of which answers a question of its own.
func encodeUpload(_ reports: [Report], _ campaign: Campaign) -> [UInt8] { encodeUpload(reports, length: campaign.uploadLength) }
/// As long as every upload of a campaign is, so that its length says nothing about the questions: zeros follow the msgpack.
func encodeUpload(_ reports: [Report], length: Int) -> [UInt8] {
    var upload: [UInt8] = [0x92, uploadVersion]
    upload += head(reports.count, below: 16, 0x90, 0xdb, 1)
    for report in reports.sorted(by: { $0.question < $1.question }) {
        upload.append(0x93)
        upload += head(report.question, below: 128, 0, 0xcc, 0)
        upload += binaryHead(report.id.count) + report.id + binaryHead(report.payload.count) + report.payload
    }
    return upload + [UInt8](repeating: 0, count: max(0, length - upload.count))
}
/// The length of the longest upload with one report of each pool, questions being `numbered` on from there; zeros fill up no more.
func longestUpload(_ pools: [[Question]], numbered first: Int) -> Int {
    let zeros = [UInt8](repeating: 0, count: 16)
    let longest = pools.map { pool in
        pool.map { asked in
            let report = Report(question: first + asked.index, id: zeros, payload: [UInt8](repeating: 0, count: asked.mechanism.width))
            return (report: report, length: encodeUpload([report], length: 0).count)
        }.max { $0.length < $1.length }!.report
    }
    return min(mostPadded, encodeUpload(longest, length: 0).count)
}
/// One byte below a limit, else a code and a big-endian number of the least of 1, 2 or 4 bytes; 2^`power` at least.
private func head(_ value: Int, below: Int, _ short: UInt8, _ code: UInt8, _ power: UInt8) -> [UInt8] {
    let size = (power...2).first { value >> (8 << Int($0)) == 0 }!
    return value < below ? [short + UInt8(value)] : [code + size] + littleEndian(value, 1 << Int(size)).reversed()
}
private func binaryHead(_ count: Int) -> [UInt8] { head(count, below: 0, 0, 0xc4, 0) }
