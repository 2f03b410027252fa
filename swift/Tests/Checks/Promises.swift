import Foundation

@testable import LdpBayes

private let day: TimeInterval = 86_400
private let week = 7 * day

/// What a device promises, on files, against an aggregator in memory. Each promise is a sentence, and fails with it.
final class Promises {
    private let (plain, series, ofMany, small): (Campaign, Campaign, Campaign, Campaign)
    private let folder: URL
    private let record: Record = ["colour": "green", "größe": 0.25, "hours": 41.5]
    private let url = "https://collect.example"
    private let clock = Guarded(Date(milliseconds: 1_767_225_600_000))
    private let received = Guarded<[String]>([])
    private let upload = Guarded<() throws -> Answer>(yes)
    private let asked = Guarded<[Date]>([])
    /// How a campaign stands, as the aggregator says.
    private let state = Guarded<() throws -> Answer>({ standing("open") })
    private var made = 0

    private static let yes: () throws -> Answer = { Answer(status: 200, headers: [:], body: Data(#"{"rejected": []}"#.utf8)) }
    private static func standing(_ state: String) -> Answer {
        Answer(status: 200, headers: [:], body: Data(#"{"state": "\#(state)"}"#.utf8))
    }
    private static let lost: () throws -> Answer = { throw URLError(.networkConnectionLost) }

    init(vectors: URL, folder: URL) throws {
        let cases = try Json(Data(contentsOf: vectors.appendingPathComponent("documents.json")))["accepted"]!.entries!
        func campaign(_ name: String) throws -> Campaign {
            try Campaign(document: document(cases.first { $0["name"]!.string == name }!["document"]))
        }
        (plain, series, ofMany) = (try campaign("de-onebit"), try campaign("series"), try campaign("series-all"))
        small = try campaign("small-epsilon")
        self.folder = folder
    }

    private var now: Date {
        get { clock.value }
        set { clock.value = newValue }
    }

    private var uploads: [String] { received.value }

    private var transport: FakeTransport {
        let documents = [plain, series, ofMany, small]
        let (received, upload, url, asked, state, clock) = (received, upload, url, asked, state, clock)
        return FakeTransport { request in
            if let body = request.body {
                received.change { $0.append(hex(Array(body))) }
                return try upload.value()
            }
            if request.url.hasSuffix("/state") {
                asked.change { $0.append(clock.value) }
                return try state.value()
            }
            let known = documents.first { request.url == "\(url)/v1/campaigns/\($0.id)" }
            return Answer(status: known == nil ? 404 : 200, headers: [:], body: known?.document ?? Data())
        }
    }

    private func device(_ place: URL, cap: Double = 10) throws -> Device {
        let clock = clock
        return try Device(FileStorage(folder: place), maxTotalEpsilon: cap, transport: transport, now: { clock.value })
    }

    private func campaign(_ place: URL, _ campaign: Campaign? = nil) throws -> DeviceCampaign {
        try device(place).campaign(url, id: (campaign ?? plain).id, maxEpsilon: 4)
    }

    private func promise(_ sentence: String, _ test: (URL) throws -> Void) throws {
        received.value = []
        upload.value = Promises.yes
        asked.value = []
        state.value = { Promises.standing("open") }
        made += 1
        do {
            try test(folder.appendingPathComponent("device \(made)"))
        } catch {
            throw Failed(description: "\(sentence): \(error)")
        }
        print(sentence)
    }

    private func receipt(_ contribution: Contribution) throws -> Receipt {
        guard case .answered(let receipt) = contribution else { throw Failed(description: "\(contribution)") }
        return receipt
    }

    private func next(_ place: URL, _ campaign: Campaign? = nil) throws -> String {
        switch try self.campaign(place, campaign).nextStep() {
        case .ask: return "ask"
        case .contribute: return "contribute"
        case .nothing(let reason): return reason
        }
    }

    private func isLast(_ place: URL, _ campaign: Campaign, _ problem: String?, _ fate: Fate, queued: Int) throws {
        let status = try self.campaign(place, campaign).status()
        try equal([status.problem, status.fate?.rawValue, "\(status.queued)"], [problem, fate.rawValue, "\(queued)"])
    }

    func all() throws {
        try consent()
        try delivery()
        try finalWords()
        try standings()
        try storage()
        try inSeries()
        try values()
        try background()
    }

    private func means(_ value: Any?, _ text: String?, _ number: Double?) throws {
        let meaning = Meaning(value)
        try equal(meaning.text, text.map { ExactText($0) })
        try equal(meaning.number, number)
    }

    private func values() throws {
        try promise("a value means the same, whatever type holds it") { _ in
            try means(NSNumber(value: 1.5), "1.5", 1.5)
            try means(NSNumber(value: true), "1", 1)
            try means(NSNumber(value: UInt64.max), "18446744073709551615", 0x1p64)
            try means(UInt64.max, "18446744073709551615", 0x1p64)
            try means(Int8(-1), "-1", -1)
            try means(Float(0.5), "0.5", 0.5)
            try means(-0.0, "0", 0)
            try means(Decimal(string: "0.10"), "0.1", 0.1)
            try means(NSDecimalNumber(string: "12345678901234567890123"), "12345678901234567890123", 0x1.4ea15b273b38ap+73)
            try means(NSString("x"), "x", nil)
            try means("xyz".prefix(1), "x", nil)
            try means(Optional<Int?>.some(.some(5)) as Any, "5", 5)
            for nothing in [nil, NSNull(), Date(), [1], [:] as [String: Int], Optional<Int>.none as Any, Double.nan] as [Any?] {
                try means(nothing, nil, nil)
            }
            let json = try JSONSerialization.jsonObject(with: Data(#"{"a": 1, "b": 1.5, "c": true, "d": "x", "e": null}"#.utf8))
            let record = Record(json as! [String: Any])
            try equal(["a", "b", "c", "d", "e"].map { record[$0].text?.string }, ["1", "1.5", "1", "x", nil])
        }
        try promise("names are compared by their code points") { _ in
            let record: Record = ["\u{e9}": 1, "e\u{301}": 2]
            try equal([record["\u{e9}"].number, record["e\u{301}"].number], [1, 2])
            try equal(Record(["e\u{301}": 1])["\u{e9}"].number, nil)
        }
        try promise("a preview names what would not be answered as it was meant") { _ in
            let found = problems(plain, ["colour": "grene", "größe": "wide", "hours": 41.5, "shoes": 1], nil).map {
                "\($0.feature) \($0.wrong)"
            }
            try equal(found, [#"colour "grene" is not declared"#, #"größe "wide" is no number"#, "shoes is no feature of the campaign"])
            try equal(problems(plain, record, nil), [])
        }
        try promise("a document as deep as may be is read with the stack of a telephone's thread") { _ in
            let text = String(repeating: "[", count: 499) + String(repeating: "]", count: 499)
            let (done, read) = (DispatchSemaphore(value: 0), Guarded(false))
            let thread = Thread {
                read.value = (try? Json(text.utf8)) != nil
                done.signal()
            }
            thread.stackSize = 512 << 10
            thread.start()
            done.wait()
            try equal(read.value, true)
        }
    }

    private func consent() throws {
        try promise("nothing is stored before somebody decides") { place in
            try equal(try next(place), "ask")
            try refuses("consent-missing") { _ = try campaign(place).contribute(record, label: "yes") }
            try equal(try device(place).runOnce(), true)
            try equal(FileManager.default.fileExists(atPath: place.path), false)
        }
        try promise("a device that agreed answers once, and every retry is the same bytes") { place in
            try campaign(place).grant()
            try equal(try next(place), "contribute")
            let first = try campaign(place).contribute(record, label: "yes")
            try equal(try campaign(place).contribute(record, label: "no"), first)
            upload.value = Promises.lost
            for _ in 1...3 {
                now += day
                _ = try device(place).runOnce(timeout: 0)
            }
            upload.value = Promises.yes
            now += day
            try equal(try device(place).runOnce(), true)
            try equal([uploads.count, Set(uploads).count], [4, 1])
            let status = try campaign(place).status()
            try equal([status.queued, status.sent, status.retries], [0, 1, 3])
            try equal(status.fate, .arrived)
            try equal(try next(place), "answered")
            let sent = try device(place).sent()
            try check(sent.count == 1 && uploads[0].contains(sent[0].id) && uploads[0].contains(sent[0].payload), "\(sent)")
        }
        try promise("a No is remembered") { place in
            try equal(try campaign(place).withdraw(), Withdrawal(deleted: 0, onItsWay: 0, refunded: 0))
            try equal(try next(place), "declined")
            try refuses("consent-missing") { _ = try campaign(place).contribute(record, label: "yes") }
        }
        try promise("a campaign that cannot be had says why") { place in
            let nowhere = try device(place).campaign(url, id: String(repeating: "A", count: 43), maxEpsilon: 4)
            guard case .nothing(reason: "http-404") = nowhere.nextStep() else { throw Failed(description: "no reason") }
        }
        try promise("who withdraws before anything left gets the loss back") { place in
            try campaign(place).grant()
            let receipt = try receipt(try campaign(place).contribute(record, label: "yes"))
            try equal(try campaign(place).withdraw(), Withdrawal(deleted: 1, onItsWay: 0, refunded: receipt.epsilon))
            try equal(try device(place).ledger().totalEpsilon, 0)
            try equal(try device(place).runOnce(), true)
            try equal(uploads, [])
        }
        try promise("what began to leave stays spent") { place in
            try campaign(place).grant()
            _ = try campaign(place).contribute(record, label: "yes")
            upload.value = Promises.lost
            _ = try device(place).runOnce(timeout: 0)
            try equal(try campaign(place).withdraw(), Withdrawal(deleted: 1, onItsWay: 1, refunded: 0))
            try equal(try campaign(place).receipt()?.fate, .deleted)
            try check(try device(place).ledger().totalEpsilon > 0, "nothing spent")
        }
        try promise("a campaign above a cap is refused, and nothing is spent") { place in
            try equal(try device(place, cap: 0.5).campaign(url, id: plain.id, maxEpsilon: 1).refusal(), .aboveTotal)
            try equal(try device(place).campaign(url, id: plain.id, maxEpsilon: 0.5).refusal(), .aboveCap)
            try refuses("loss-above-cap") { try device(place).campaign(url, id: plain.id, maxEpsilon: 0.5).grant() }
            try equal(FileManager.default.fileExists(atPath: place.path), false)
        }
        try promise("the first campaign fits where the cap is what it promises, though that double is above the decimal") { place in
            try equal(small.realisedEpsilon, 0.1)
            try equal(try device(place, cap: 0.1).campaign(url, id: small.id, maxEpsilon: 0.1).refusal(), nil)
            try equal(try device(place, cap: (0.1).nextDown).campaign(url, id: small.id, maxEpsilon: 0.1).refusal(), .aboveTotal)
        }
        try promise("switched off, nothing is answered and nothing sent") { place in
            try campaign(place).grant()
            _ = try campaign(place).contribute(record, label: "yes")
            try device(place).enable(false)
            try equal(try device(place).runOnce(), true)
            try equal(uploads.count, 0)
            try device(place).enable(true)
            try equal(try device(place).runOnce(), true)
            try equal(uploads.count, 1)
        }
        try promise("an undeclared label spends nothing") { place in
            try campaign(place).grant()
            try refuses("undeclared-label") { _ = try campaign(place).contribute(record, label: "perhaps") }
            try equal(try device(place).ledger().receipts, [])
        }
    }

    private func delivery() throws {
        try promise("a final word takes the report off the queue, a doubt does not, and Retry-After is waited for") { place in
            try campaign(place).grant()
            _ = try campaign(place).contribute(record, label: "yes")
            let busy = problem(503, "busy", ["retry-after": "100"])
            upload.value = { busy }
            try equal(try device(place).runOnce(timeout: 0), false)
            try check(try campaign(place).status().nextTry! >= now + 100, "too early")
            upload.value = { Answer(status: 404, headers: [:], body: Data("a hotel's login page".utf8)) }
            now += day
            try equal(try device(place).runOnce(timeout: 0), false)
            try isLast(place, plain, "http-404", .onItsWay, queued: 1)
            let deleted = problem(410, "campaign-deleted")
            upload.value = { deleted }
            now += day
            try equal(try device(place).runOnce(timeout: 0), true)
            try equal(try campaign(place).status().dropped, ["campaign-deleted": 1])
            try equal(try campaign(place).status().fate, .refused)
        }
        try promise("Retry-After may be a date, by the server's own clock") { place in
            try campaign(place).grant()
            _ = try campaign(place).contribute(record, label: "yes")
            let dates = ["retry-after": "Sun, 06 Nov 1994 08:51:37 GMT", "date": "Sun, 06 Nov 1994 08:49:37 GMT"]
            let busy = problem(503, "busy", dates)
            upload.value = { busy }
            try equal(try device(place).runOnce(timeout: 0), false)
            try equal(try campaign(place).status().nextTry!, now + 120)
        }
        try promise("a clock that jumps strands no report and throws none away") { place in
            try campaign(place).grant()
            _ = try campaign(place).contribute(record, label: "yes")
            let before = now
            upload.value = Promises.lost
            now += 20 * 365 * day  // far ahead: one try fails there
            _ = try device(place).runOnce(timeout: 0)
            now = before  // and back: the next try is no further away than the policy says
            _ = try device(place).runOnce(timeout: 0)
            try check(try campaign(place).status().nextTry! <= now + retryAfterLongest, "stranded")
            now += 40 * 365 * day  // older than any report may be, after two tries only
            upload.value = Promises.yes
            try equal(try device(place).runOnce(), true)
            try equal(try campaign(place).status().fate, .arrived)
            try equal(Set(uploads).count, 1)
            now = before
        }
        try promise("a clock beyond all calendars ends nothing") { place in
            let before = now
            try campaign(place).grant()
            _ = try campaign(place).contribute(record, label: "yes")
            upload.value = Promises.lost
            for seconds in [Double.infinity, -.infinity, 1e300, -1e300, .nan] {
                now = Date(timeIntervalSince1970: seconds)
                _ = try device(place).runOnce(timeout: 0)
                _ = try device(place).ledger().description
            }
            now = before + day
            upload.value = Promises.yes
            try equal(try device(place).runOnce(), true)
            try equal(Set(uploads).count, 1)
            now = before
        }
        try promise("threads contribute once between them") { place in
            try campaign(place).grant()
            DispatchQueue.concurrentPerform(iterations: 8) { _ in
                _ = try! campaign(place).contribute(record, label: "yes")
                _ = try! device(place).runOnce(timeout: 5)
            }
            try equal(Set(uploads).count, 1)
        }
        try promise("a device delivers in the background, and is woken by an answer") { place in
            let device = try device(place)
            let campaign = try device.campaign(url, id: plain.id, maxEpsilon: 4)
            try campaign.grant()
            device.start(firstDelay: 0)
            _ = try campaign.contribute(record, label: "yes")
            for _ in 1...500 where try campaign.status().fate != .arrived { Thread.sleep(forTimeInterval: 0.01) }
            device.close()
            try equal(try campaign.status().fate, .arrived)
        }
    }

    private func background() throws {
        try promise("what blocks can be awaited") { place in
            let (campaign, record) = (try campaign(place), record)
            let (done, told) = (DispatchSemaphore(value: 0), Guarded<[String]>([]))
            Task {
                guard case .ask = await campaign.nextStep(), case .contribute = await campaign.decide(true) else { return }
                guard case .answered(let receipt) = try await campaign.contribute(record, label: "yes") else { return }
                if try campaign.receipt() == receipt { told.value = ["answered"] }
                done.signal()
            }
            try equal(done.wait(timeout: .now() + 30), .success)
            try equal(told.value, ["answered"])
            let again = Guarded<Withdrawal?>(nil)
            Task {
                again.value = try await campaign.withdraw()
                done.signal()
            }
            try equal(done.wait(timeout: .now() + 30), .success)
            try equal(again.value?.deleted, 1)
        }
    }

    private func queue(_ place: URL) throws {
        try campaign(place).grant()
        _ = try campaign(place).contribute(record, label: "yes")
    }

    /// Its next upload, so much later, is answered so.
    private func hears(_ place: URL, _ later: TimeInterval, _ answer: @escaping () throws -> Answer, queued: Int = 1) throws {
        now += later
        upload.value = answer
        let before = uploads.count
        _ = try device(place).runOnce(timeout: 0)
        try equal(uploads.count, before + 1)
        try equal(try campaign(place).status().queued, queued)
    }

    private func finalWords() throws {
        let start = now
        let (closed, gone) = (problem(409, "campaign-closed"), problem(451, "unavailable"))
        for word in [closed, gone, nil] {
            try promise("\(word?.problemCode ?? "window-over") counts when it is heard twice, a day apart") { place in
                let word = { [self] in try word ?? rejecting(device(place).sent().map(\.id), "window-over") }
                try queue(place)
                try hears(place, 0, word)
                try hears(place, day - 1, word)
                now -= 3 * day  // the clock is set back: the day begins anew
                _ = try device(place).runOnce(timeout: 0)
                try hears(place, day / 2, word)
                try hears(place, day - 1, word)
                try hears(place, day / 4, Promises.lost)
                try hears(place, day / 4, word, queued: 0)
                try equal(try campaign(place).status().fate, .refused)
                try equal([uploads.count, Set(uploads).count], [6, 1])
            }
        }
        try promise("whatever is not final begins the day anew") { place in
            try queue(place)
            let closing = problem(409, "campaign-closing", ["retry-after": "60"])
            for later in [problem(503, "clock-unsettled"), problem(404, "unknown-campaign"), closing] {
                try hears(place, day, { closed })
                try hears(place, day, { later })
            }
            for later in ["campaign-closing", "clock-unsettled"] {
                try hears(place, day, { closed })
                try hears(place, day, { [self] in rejecting(try device(place).sent().map(\.id), later) })
            }
            try hears(place, day, { closed })
            try hears(place, day, Promises.yes, queued: 0)
            try isLast(place, plain, nil, .arrived, queued: 0)
        }
        try promise("what is wrong with the bytes is final at once") { place in
            try queue(place)
            let wrong = problem(422, "malformed-upload")
            try hears(place, 0, { wrong }, queued: 0)
            try equal(try campaign(place).status().dropped, ["malformed-upload": 1])
        }
        try promise("no report expires before it could hear its second word") { place in
            try queue(place)
            for _ in 1...10 { try hears(place, day, Promises.lost) }
            try hears(place, 20 * day - 1, { closed })
            try hears(place, day, { closed }, queued: 0)
            try equal(try campaign(place).status().fate, .refused)
        }
        try promise("a storage from before final words were heard twice is read") { place in
            try queue(place)
            try hears(place, 0, { closed })
            let file = place.appendingPathComponent("device")
            let body = String(decoding: try Data(contentsOf: file).dropFirst(43), as: UTF8.self)
            let older = body.replacingOccurrences(of: #""heard":[0-9]+,"#, with: "", options: .regularExpression)
            try check(older != body && !older.contains("heard"), older)
            let ofEach = older.replacingOccurrences(of: #""payload":"#, with: #""heard":0,"payload":"#)
            for older in [ofEach, older] {
                try Data((base64url(sha256(Data(older.utf8))) + older).utf8).write(to: file)
                try equal(try campaign(place).status().queued, 1)
            }
            try hears(place, day, Promises.yes, queued: 0)
        }
        now = start
    }

    private func standings() throws {
        let begun = now
        let codes: [(String, Refusal)] = [
            ("not-yet", .notOpen), ("closing", .closing), ("closed", .closed), ("full", .full), ("deleted", .deleted),
        ]
        for (word, refusal) in codes {
            try promise("nobody is asked, and nothing spent, where a campaign is \(word)") { place in
                state.value = { Promises.standing(word) }
                let own = try campaign(place)
                guard case .nothing(refusal.rawValue) = own.nextStep() else { throw Failed(description: "asked") }
                try refuses(refusal.rawValue) { try own.grant() }
                try equal([asked.value.count, FileManager.default.fileExists(atPath: place.path) ? 1 : 0], [1, 0])
                state.value = { Promises.standing("open") }
                now += day
                try own.grant()
                state.value = { Promises.standing(word) }
                now += day
                for one in [own, try campaign(place)] {
                    guard case .nothing(refusal.rawValue) = one.nextStep() else { throw Failed(description: "goes on") }
                    try equal(try one.contribute(record, label: "yes"), .refused(refusal))
                }
                let elsewhere = try device(place).campaign("https://elsewhere.example", id: plain.id, maxEpsilon: 4)
                guard case .nothing(refusal.rawValue) = elsewhere.nextStep() else { throw Failed(description: "asked anew") }
                try equal(try device(place).ledger().receipts, [])
                try equal(asked.value.count, 3)
                state.value = { Promises.standing("open") }
                now += day
                guard case .contribute = own.nextStep() else { throw Failed(description: "a closing was taken back") }
            }
        }
        try promise("it is heard once a day, after a restart too, and again where the clock went back") { place in
            now = Date(milliseconds: 1_767_225_600_000)
            try campaign(place).grant()
            for _ in 1...3 { try equal(try next(place), "contribute") }
            now += day - 1
            try equal(try next(place), "contribute")
            try equal(asked.value.count, 1)
            now += 1
            for _ in 1...2 { try equal(try next(place), "contribute") }
            try equal(asked.value.count, 2)
            now -= 400 * day
            _ = try next(place)
            try equal(asked.value.count, 3)
            now = begun
        }
        try promise("answering asks nobody how a campaign stands, and who answered, declined or switched off does not either") { place in
            try queue(place)
            _ = try next(place)
            let (declined, off) = (place.appendingPathExtension("declined"), place.appendingPathExtension("off"))
            _ = try campaign(declined).withdraw()
            _ = try next(declined)
            try device(off).enable(false)
            try equal(try campaign(off).refusal(), .switchedOff)
            try equal(asked.value.count, 1)
        }
        let closed = #"{"state": "closed"}"#
        let bodies = ["<html>", "[1]", #"{"state": ["closed"]}"#, closed + String(repeating: " ", count: 1024)]
        let odd: [() throws -> Answer] = [Promises.lost, { problem(503, "busy") }, { problem(404, "x") }, { Promises.standing("paused") }]
        let answers = odd + bodies.map { body in { Answer(status: 200, headers: [:], body: Data(body.utf8)) } }
        for (number, answer) in answers.enumerated() {
            try promise("what cannot be heard or understood stops nobody: \(number + 1)") { place in
                state.value = answer
                let own = try campaign(place)
                guard case .ask = own.nextStep() else { throw Failed(description: "not asked") }
                try own.grant()
                guard case .contribute = own.nextStep() else { throw Failed(description: "stopped") }
                try equal(asked.value.count, 1)
            }
        }
        try promise("a try that failed is not repeated for ten minutes, unless the clock went back") { place in
            state.value = { problem(503, "busy") }
            let own = try campaign(place)
            for (wait, tries) in [(0, 1), (1, 1), (598, 1), (1, 2), (-1, 3)] {
                now += TimeInterval(wait)
                _ = own.nextStep()
                try equal(asked.value.count, tries)
            }
        }
        try promise("what is kept of it and is none of it stops nobody") { place in
            try campaign(place).grant()
            let (file, day) = (place.appendingPathComponent("state-\(plain.id)"), now.milliseconds)
            try check(FileManager.default.fileExists(atPath: file.path), "nothing kept")
            for kept in ["", "no time", "1e999 closed", "x closed", "\(day)", "\(day) shut", "1 closed", "closed", "\(Int64.max) closed"] {
                try Data(kept.utf8).write(to: file)
                try equal(try next(place), "contribute")
            }
        }
        try promise("of a thousand new devices nobody is asked, and nothing spent, after a closing, a filling and a deletion") { _ in
            try Thousand(plain, record).askNobody()
        }
        try promise("a thousand devices lose nothing over a day of a wrong clock") { _ in try Thousand(plain, record).loseNothing() }
        now = begun
    }

    private func storage() throws {
        try promise("a damaged ledger is never taken for an empty one") { place in
            try campaign(place).grant()
            let file = place.appendingPathComponent("device")
            let whole = try String(contentsOf: file, encoding: .utf8)
            for damaged in ["", String(whole.dropLast()), whole.replacingOccurrences(of: "true", with: "false"), "x"] {
                try Data(damaged.utf8).write(to: file)
                try refuses("storage-corrupt") { _ = try campaign(place).contribute(record, label: "yes") }
                try equal(try String(contentsOf: file, encoding: .utf8), damaged)
            }
        }
        try promise("where the storage cannot be written nothing is answered, and nothing is spent") { place in
            try campaign(place).grant()
            let storage = FailingStorage(inner: FileStorage(folder: place))
            let device = try Device(storage, maxTotalEpsilon: 10, transport: transport)
            let campaign = try device.campaign(url, id: plain.id, maxEpsilon: 4)
            try refuses("storage-unavailable") { _ = try campaign.contribute(record, label: "yes") }
            try equal(try device.ledger().receipts, [])
            try equal(try next(place), "contribute")
        }
        try promise("erasing leaves nothing") { place in
            try campaign(place).grant()
            _ = try campaign(place).contribute(record, label: "yes")
            try device(place).erase()
            let left = try FileManager.default.contentsOfDirectory(atPath: place.path)
            try equal(left.filter { !$0.hasSuffix(".lock") }, [])
            try equal(try next(place), "ask")
        }
        try promise("an export has no secret") { place in
            try campaign(place).grant()
            let exported = String(decoding: try device(place).export(), as: UTF8.self)
            try check(exported.contains(plain.id) && !exported.contains("secret"), exported)
        }
    }

    private var first: Date { series.authored.windows!.from }

    /// A device that has agreed before the first window; its clock stands there. Returns when its window opens.
    private func early(_ place: URL, _ campaign: Campaign) throws -> Date {
        now = first - 1
        try equal(try next(place, campaign), "ask")
        try self.campaign(place, campaign).grant()
        return try self.campaign(place, campaign).window()!.lowerBound
    }

    private func isRefused(_ place: URL, _ refusal: Refusal) throws {
        try equal(try next(place, series), refusal.rawValue)
        try equal(try campaign(place, series).contribute(record, label: "yes"), .refused(refusal))
    }

    private func rejecting(_ ids: [String], _ code: String = "window-not-open") -> Answer {
        Checks.rejecting(Dictionary(uniqueKeysWithValues: ids.map { ($0, code) }), ["retry-after": "1"])
    }

    private func inSeries() throws {
        try promise("a device answers a series in its window and in no other, and once") { place in
            let own = try early(place, series)
            let window = Int(own.timeIntervalSince(first) / week)
            for week in 0..<window {
                for moment in series.authored.windows!.times(week).ends {
                    now = moment
                    try isRefused(place, .windowNotOpen)
                }
            }
            now = own
            try equal(try next(place, series), "contribute")
            let receipt = try receipt(try campaign(place, series).contribute(record, label: "yes"))
            try equal(receipt.questions.map { $0 / series.questions.count }, [window])
            for week in -1...series.authored.windows!.count {
                now = series.authored.windows!.opens(week)  // also where the clock is set back
                try equal(try next(place, series), "answered")
                try equal(try campaign(place, series).contribute(record, label: "no"), .answered(receipt))
            }
            try equal(try device(place).runOnce(), true)
            try equal(uploads.count, 1)
        }
        try promise("a device that was off in its window answers in none") { place in
            let end = try early(place, series) + week
            let last = series.authored.windows!.opens(series.authored.windows!.count)
            for moment in stride(from: end, through: last, by: week) {
                now = moment
                try isRefused(place, .windowOver)
            }
            now = last + 30 * day
            try isRefused(place, .closed)
            now = end - week - 0.001  // the clock is set back: it may still answer in its window, and nowhere else
            try isRefused(place, .windowNotOpen)
            try equal(try device(place).ledger().receipts, [])
            try equal(uploads.count, 0)
        }
        try promise("who has a secret is asked about a series while its window is not over") { place in
            now = first - 1
            try campaign(place).grant()
            let own = try campaign(place, series).window()!
            now = own.upperBound
            try equal(try next(place, series), "window-over")
            try refuses("window-over") { try campaign(place, series).grant() }
            now = own.lowerBound - 0.001
            try equal(try next(place, series), "ask")
            try campaign(place, series).grant()
            try isRefused(place, .windowNotOpen)
        }
        try promise("what the server finds too early stays queued, and the same bytes are sent later") { place in
            now = try early(place, series)
            _ = try campaign(place, series).contribute(record, label: "yes")
            upload.value = { [self] in rejecting(try device(place).sent().map(\.id)) }
            for tries in 1...3 {
                try equal(try device(place).runOnce(timeout: 0), false)
                try isLast(place, series, "window-not-open", .onItsWay, queued: 1)
                try equal(try campaign(place, series).status().retries, tries)
                now += 3600
            }
            upload.value = Promises.yes
            try equal(try device(place).runOnce(), true)
            try isLast(place, series, nil, .arrived, queued: 0)
            try equal([uploads.count, Set(uploads).count], [4, 1])
        }
        try promise("of several reports those that the server finds too early alone are sent again") { place in
            now = try early(place, ofMany)
            _ = try campaign(place, ofMany).contribute(record, label: "yes")
            upload.value = { [self] in rejecting(try device(place).sent().prefix(1).map(\.id)) }
            try equal(try device(place).runOnce(timeout: 0), false)
            try isLast(place, ofMany, "window-not-open", .onItsWay, queued: 1)
            upload.value = Promises.yes
            now += 3600
            try equal(try device(place).runOnce(), true)
            try isLast(place, ofMany, nil, .arrived, queued: 0)
            try equal(try campaign(place, ofMany).status().sent, 4)
            try equal(Set(uploads.map(\.count)).count, 1)
            let reports = try uploads.map { try decodedUpload(unhex($0)!, ofMany).count }
            try equal([reports.first, reports.last], [4, 1])
        }
        try promise("an answer is given up when its window has been over for a week") { place in
            now = try early(place, series)
            let over = now + 2 * week
            _ = try campaign(place, series).contribute(record, label: "yes")
            upload.value = Promises.lost
            while try campaign(place, series).status().fate != .expired {
                try check(now <= over + 2 * day, "not given up")
                now += day
                _ = try device(place).runOnce(timeout: 0)
            }
            try check(now > over, "given up too early")
        }
    }
}

extension Range where Bound == Date {
    fileprivate var ends: [Date] { [lowerBound, upperBound - 0.001] }
}

/// A storage that reads, and fails to write.
private struct FailingStorage: Storage {
    let inner: FileStorage

    func read(_ name: String) throws -> Data? { try inner.read(name) }
    func change(_ name: String, _ change: (Data?) throws -> Data?) throws {
        _ = try change(try inner.read(name))
        throw failure("storage-unavailable")
    }
    func clear() throws { try inner.clear() }
    func exclusive<T>(wait: TimeInterval, _ work: () throws -> T) throws -> T? { try inner.exclusive(wait: wait, work) }
}
