import NIOHTTP1
import ServiceKit
import SyncModel
import Testing

@testable import BackendCalls
@testable import IngestAPI

@Suite("Ingest: every parameter and every pair of faults, by table")
struct IngestAPITableTests {
    private static let scopes = [PushScope.single, .global]

    /// The fault in the answer to a call whose earliest failing check is `check`. A nil value means: the answer is
    /// correct.
    private func flaw(_ request: IngestTableRequest, _ check: IngestTableCheck?) async -> String? {
        // Thousands of these calls never suspend by themselves, and other tests need the threads.
        await Task.yield()
        let (answer, pushes) = await request.send()
        let code = check?.code ?? .success
        guard answer.status == .ok, answer.content.code == code else {
            return "\(answer.status.code) \(answer.content.code)"
        }
        guard pushes.count == (check?.isAfterSubmission ?? true ? 1 : 0) else { return "\(pushes.count) submitted" }
        guard check == nil || isSentence(answer.content.detail) else {
            return "detail \(answer.content.detail ?? "missing")"
        }
        return nil
    }

    private func isSentence(_ detail: String?) -> Bool {
        guard let detail else { return false }
        return detail.count > 10 && detail.hasSuffix(".")
    }

    @Test("H2, SEC8: a push at the permitted limits is stored unchanged", arguments: IngestTableRow.all)
    func allowed(row: IngestTableRow) async throws {
        for scope in row.scopes {
            var request = IngestTableRequest(scope)
            row.apply(&request)
            let (answer, pushes) = await request.send()
            #expect(
                answer.content.code == .success && answer.status == .ok, "\(scope): \(answer.content.detail ?? "")")
            #expect(row.isAsGiven(try #require(pushes.first)) && pushes.count == 1, "\(scope)")
        }
    }

    @Test("H2, SEC8: a fault has its code and a detail", arguments: IngestTableFault.all, scopes)
    func fault(fault: IngestTableFault, scope: PushScope) async {
        var request = IngestTableRequest(scope)
        fault.apply(&request)
        #expect(await flaw(request, fault.check(in: scope)) == nil)
    }

    @Test("H3, SEC8: of any two faults the earlier check answers", arguments: IngestTableFault.all, scopes)
    func pairs(fault: IngestTableFault, scope: PushScope) async {
        var flaws: [String] = []
        for partner in IngestTableFault.partners(of: fault) {
            var request = IngestTableRequest(scope)
            fault.apply(&request)
            partner.apply(&request)
            let check = [fault, partner].compactMap { $0.check(in: scope) }.min()
            if let flaw = await flaw(request, check) { flaws.append("\(partner.name): \(flaw)") }
        }
        #expect(flaws.isEmpty)
    }

    @Test("H3: the table reaches every check, every parameter and every order of two checks")
    func reach() {
        let all = IngestTableFault.all
        #expect(Set(all.map(\.name)).count == all.count, "partners are found by name")
        #expect(Set(IngestTableRow.all.map(\.name)).count == IngestTableRow.all.count)
        for parameter in IngestTableFault.parameters.union(["instanceId"]) {
            for names in [all.map(\.name), IngestTableRow.all.map(\.name)] {
                #expect(names.contains { $0.hasPrefix(parameter + ": ") }, "\(parameter)")
            }
        }
        for scope in Self.scopes {
            var orders: Set<[IngestTableCheck]> = []
            var count = 0
            for fault in all {
                for partner in IngestTableFault.partners(of: fault) {
                    count += 1
                    orders.insert([fault, partner].compactMap { $0.check(in: scope) }.sorted())
                }
            }
            #expect(count >= 18_884, "\(count)")
            let checks = IngestTableCheck.allCases
            for (index, first) in checks.enumerated() {
                for second in checks[(index + 1)...] where !Self.excludesOther.contains([first, second]) {
                    #expect(orders.contains([first, second]), "\(scope): \(first), \(second)")
                }
            }
        }
    }

    /// Pairs of checks that cannot both fail in one call: an id is not both missing and too long, and the store has one
    /// answer.
    private static let excludesOther: Set<[IngestTableCheck]> = [
        [.thirdMessageIDGiven, .thirdMessageIDLength], [.firstTime, .outcome],
    ]

    @Test("H2: a global push ignores any linkToken")
    func ignoredLinkToken() async {
        let ignored = IngestTableFault.all.filter { $0.check(in: .global) == nil }
        #expect(ignored.count > 10)
        for fault in ignored {
            var request = IngestTableRequest(.global)
            fault.apply(&request)
            #expect(await request.send().pushes.map(\.linkToken) == [""], "\(fault.name)")
        }
    }

    @Test("H2: a validTimeEnd of 13 digits may lie in the past", arguments: [1_000_000_000_000, 1_700_000_000_000])
    func past(time: Int64) async {
        for (scope, code) in [(PushScope.single, ResultCode.notOnline), (.global, .success)] {
            for json in ["\(time)", "\"\(time)\""] {
                var request = IngestTableRequest(scope)
                request.set("validTimeEnd", json: json)
                request.outcome = .stored(OplogID(7), online: true, validity: .over)
                let (answer, pushes) = await request.send()
                #expect(answer.content.code == code && pushes.map(\.validUntil) == [WallTime(milliseconds: time)])
                #expect(isSentence(answer.content.detail))
            }
        }
    }

    // MARK: Sizes

    @Test(
        "H1: a body up to the limit is read, one above it is 413",
        arguments: [
            ("single", 65_535, true), ("single", 65_536, true), ("single", 65_537, false),
            ("single", 1_048_576, false), ("global", 65_535, true), ("global", 65_536, true),
            ("global", 65_537, false), ("global", 1_048_576, false), ("batch", 1_048_576, true),
            ("batch", 16_777_215, true), ("batch", 16_777_216, true), ("batch", 16_777_217, false),
        ])
    func bodySize(path: String, bytes: Int, isRead: Bool) {
        let answer = refusal("/webapi/sync/\(path)?instanceId=w_app", bytes: bytes)
        #expect(isRead ? answer == nil : answer?.status == .payloadTooLarge && answer?.content.code == .tooLarge)
        #expect(isRead || isSentence(answer?.content.detail))
    }

    @Test("H1: an instanceId is as long as the URI may be, one byte more is 414")
    func instanceIDSize() async {
        for scope in Self.scopes {
            let start = "/webapi/sync/single?instanceId="
            for (bytes, status) in [(8_191, UInt(200)), (8_192, 200), (8_193, 414)] {
                var request = IngestTableRequest(scope)
                let id = IngestTableFault.letters(bytes - start.utf8.count)
                request.query = "?instanceId=" + id
                request.knownInstances = [id]
                let (answer, pushes) = await request.send()
                #expect(answer.status.code == status && pushes.map(\.instanceID.text) == (status == 200 ? [id] : []))
                #expect(status == 200 || isSentence(answer.content.detail))
            }
        }
    }

    @Test("H6: a batch of 1 MB is done item by item")
    func largeBatch() async {
        let payload = IngestTableFault.letters(2_100)
        let items = (0..<500).map { index in
            var request = IngestTableRequest(.single)
            request.set("thirdMsgId", text: "\(index)")
            request.set("payload", text: payload)
            return request.body
        }
        let submission = StubSubmission()
        let body = batch(items)
        #expect(body.count > 1 << 20)
        let answer = await PushIntake.stub(submission, inFlightMaximum: 1_000)
            .answerBatch(instanceID: "w_app", body: body)
        #expect(answer.results?.map(\.code) == Array(repeating: .success, count: 500))
        #expect(submission.pushes.map(\.thirdMessageID.text) == (0..<500).map(String.init))
    }

    @Test("H6: a fault of an item has the code of a single push, and affects no other item")
    func items() async {
        let faults = IngestTableFault.all.filter(\.isOfItem)
        #expect(faults.count > 100)
        for fault in faults {
            var request = IngestTableRequest(.single)
            let good = request.body
            fault.apply(&request)
            let answer = await PushIntake.stub().answerBatch(
                instanceID: "w_app", body: batch([good, request.body, good]))
            let codes = [.success, fault.check(in: .single)?.code, .success]
            #expect(answer.results?.map { Optional($0.code) } == codes, "\(fault.name)")
            #expect(answer.code == .success && isSentence(answer.results?[1].detail), "\(fault.name)")
        }
    }

    @Test("H3: an item of a batch has the levels that a single push has")
    func itemLevels() async {
        for (levels, isRead) in [(15, true), (16, false)] {
            var request = IngestTableRequest(.single)
            request.set("payload", json: IngestTableFault.nested(levels))
            let answer = await PushIntake.stub().answerBatch(instanceID: "w_app", body: batch([request.body]))
            #expect((answer.results?.first ?? answer).code == (isRead ? .success : .argsIsNull))
            #expect(isRead || isSentence((answer.results?.first ?? answer).detail))
        }
    }

    private func batch(_ items: [[UInt8]]) -> [UInt8] {
        Array("{\"items\":[".utf8) + Array(items.joined(separator: Array(",".utf8))) + Array("]}".utf8)
    }

    private func refusal(_ path: String, bytes: Int) -> HTTPAnswer? {
        let head = HTTPRequestHead(
            version: .http1_1, method: .POST, uri: path,
            headers: ["Content-Type": "application/json", "Content-Length": String(bytes)])
        do throws(EarlyRefusal) {
            _ = try RequestRules.call(of: head)
            return nil
        } catch {
            return error.answer
        }
    }
}
