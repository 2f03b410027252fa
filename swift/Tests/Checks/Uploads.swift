// The server's side of an upload, as far as the vectors go.
@testable import LdpBayes

/// The reports of an upload: exactly one encoding is valid.
func decodedUpload(_ bytes: [UInt8], _ campaign: Campaign) throws -> [Report] {
    var upload = Upload(bytes: bytes, campaign: campaign)
    return try upload.reports()
}

private struct Upload {
    let bytes: [UInt8]
    let campaign: Campaign
    var at = 0

    private func require(_ right: Bool) throws { try ensure(right, "malformed-upload") }

    private mutating func byte() throws -> Int {
        try require(at < bytes.count)
        defer { at += 1 }
        return Int(bytes[at])
    }

    /// A big-endian number of 1, 2 or 4 bytes, which no fewer would hold.
    private mutating func number(_ power: Int) throws -> Int {
        try require(0...2 ~= power)
        let value = try (0..<(1 << power)).reduce(0) { sum, _ in 256 * sum + (try byte()) }
        try require(power == 0 || value >= 1 << (8 << (power - 1)))
        return value
    }

    private mutating func binary() throws -> [UInt8] {
        let count = try number(try byte() - 0xc4)
        try require(count <= bytes.count - at)
        defer { at += count }
        return Array(bytes[at..<at + count])
    }

    private mutating func listHead() throws -> Int {
        let code = try byte()
        let size = code == 0xdc ? try number(1) : code - 0x90
        try require(code == 0xdc ? size >= 16 : 0...15 ~= size)
        return size
    }

    mutating func reports() throws -> [Report] {
        let asked = campaign.questions.count * (campaign.authored.windows?.count ?? 1)
        try require(try listHead() == 2)
        try require(try byte() == uploadVersion)
        let blocks = try listHead()
        try require(1...asked ~= blocks)
        var last = -1
        var reports: [Report] = []
        for _ in 0..<blocks {
            try require(try listHead() == 3)
            let code = try byte()
            let question = code < 128 ? code : try number(code - 0xcc)
            try require((code < 128 || question >= 128) && question > last && question < asked)
            last = question
            let (ids, payloads) = (try binary(), try binary())
            let width = campaign.questions[question % campaign.questions.count].mechanism.width
            let count = ids.count / 16
            try require(count > 0 && ids.count % 16 == 0 && payloads.count == count * width)
            for i in 0..<count {
                let (id, payload) = (Array(ids[16 * i..<16 * i + 16]), Array(payloads[width * i..<width * i + width]))
                reports.append(Report(question: question, id: id, payload: payload, item: nil))
            }
        }
        try require(bytes.count == max(at, campaign.uploadLength) && bytes[at...].allSatisfy { $0 == 0 })
        return reports
    }
}

/// What one report adds to each cell of the tally. Throws for what no device sends.
func counted(_ mechanism: Mechanism, _ payload: [UInt8]) throws -> [(cell: Int, count: Int)] {
    let d = mechanism.domainSize
    func index(_ bytes: ArraySlice<UInt8>) throws -> Int {
        let index = bytes.reversed().reduce(0) { 256 * $0 + Int($1) }
        try ensure(index < d, "index-out-of-range")
        return index
    }
    switch mechanism.kind {
    case .direct: return [(try index(payload[...]), 1)]
    case .oneBit:
        let cell = try index(payload.dropLast())
        try ensure(payload.last! <= 1, "bit-out-of-range")
        return [(2 * cell + Int(payload.last!), 1)]
    case .noisyVector(let noise):
        return try (0..<d).map { cell in
            let word = payload[4 * cell..<4 * cell + 4].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            let value = Int(Int32(bitPattern: word))
            try ensure(abs(value) <= Int(noise.bound), "value-out-of-range")
            return (cell, value)
        }
    case .subset, .unary:
        let set = (0..<8 * payload.count).filter { payload[$0 / 8] >> UInt8($0 % 8) & 1 == 1 }
        try ensure(set.allSatisfy { $0 < d }, "padding-bits-set")
        if case .subset(let w, _) = mechanism.kind { try ensure(set.count == Int(w.word!), "wrong-subset-size") }
        return set.map { ($0, 1) }
    }
}
