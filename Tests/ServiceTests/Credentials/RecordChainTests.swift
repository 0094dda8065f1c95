import Credentials
import SyncModel
import Testing

@testable import ControlTool

@Suite("SEC15: the chain of audit records")
struct RecordChainTests {
    /// A chain like one of the store.
    private static func chain(_ count: Int64) -> [OperationRecord] {
        var (records, previous) = ([OperationRecord](), RecordChain.origin)
        for number in 1...count {
            var record = OperationRecord(
                number: number, recordedAtMicroseconds: 1_700_000_000_123_456,
                actor: number == 1 ? "console:alice" : "mssctl:root", source: "192.0.2.1",
                actionCode: number == 1 ? 1 : 5,
                instanceID: InstanceID("demo_app"), subject: "ORDERS",
                before: number == 1 ? nil : #"{"online": true}"#,
                after: #"{"online": \#(number == 1 ? "true" : "false")}"#, previousHash: previous, hash: [])
            record.hash = RecordChain.hash(of: record)
            previous = record.hash
            records.append(record)
        }
        return records
    }

    private static func fault(
        in records: [OperationRecord], from first: Int64 = 1, head: RecordHead? = nil
    ) -> RecordChainVerifier.Fault? {
        var verifier = RecordChainVerifier(from: first)
        for record in records { if let fault = verifier.verify(record) { return fault } }
        return head.flatMap { verifier.end(at: $0) }
    }

    @Test("the hashes are the stored ones, which other programs also compute")
    func vectors() {
        let hashes = Self.chain(2).map { HexText.of($0.hash) }
        #expect(
            hashes == [
                "25734e833a72eddc8c3e577e76b1d38eeda8f13cd5a6506237840a7f1d8e2255",
                "4a0d78e28194fa27a2200427a4f3c7e97d608ee32d88868f208345742ac4e90b",
            ])
    }

    @Test("an unchanged chain is complete, from its beginning and from any number")
    func whole() {
        let records = Self.chain(5)
        let head = RecordHead(number: 5, hash: records[4].hash)
        #expect(Self.fault(in: records, head: head) == nil)
        #expect(Self.fault(in: Array(records[2...]), from: 3, head: head) == nil)
        #expect(Self.fault(in: [], head: RecordHead(number: 0, hash: RecordChain.origin)) == nil)
    }

    @Test("any change in a record is found")
    func altered() {
        let changes: [(inout OperationRecord) -> Void] = [
            { $0.actor += "x" }, { $0.source = "" }, { $0.subject += "x" }, { $0.before = nil }, { $0.after = "{}" },
            { $0.recordedAtMicroseconds += 1 }, { $0.actionCode += 1 }, { $0.instanceID = InstanceID("other") },
            { $0.hash[31] ^= 1 },
        ]
        for change in changes {
            var records = Self.chain(5)
            change(&records[2])
            #expect(Self.fault(in: records) == .altered(number: 3))
        }
    }

    @Test("a changed record with a recomputed hash no longer fits the next one")
    func rehashed() {
        var records = Self.chain(5)
        records[2].actor = "console:mallory"
        records[2].hash = RecordChain.hash(of: records[2])
        #expect(Self.fault(in: records) == .unlinked(number: 4))
    }

    @Test("text that is moved between two fields changes the record")
    func fieldsDoNotRunTogether() {
        var record = Self.chain(1)[0]
        let hash = RecordChain.hash(of: record)
        (record.actor, record.subject) = ("console:aliceO", "RDERS")
        #expect(RecordChain.hash(of: record) != hash)
    }

    @Test("records that are missing, at the end too, doubled or in another order are found")
    func moved() {
        let records = Self.chain(5)
        let head = RecordHead(number: 5, hash: records[4].hash)
        #expect(Self.fault(in: records.filter { $0.number != 3 }) == .missing(number: 3))
        #expect(Self.fault(in: Array(records[..<4]), head: head) == .missing(number: 5))
        #expect(Self.fault(in: [], head: head) == .missing(number: 1))
        #expect(Self.fault(in: [records[0], records[0]]) == .missing(number: 2))
        #expect(Self.fault(in: [records[0], records[2], records[1]]) == .missing(number: 2))
        let shorter = RecordHead(number: 4, hash: records[3].hash)
        #expect(Self.fault(in: records, head: shorter) == .wrongEnd(number: 5))
        #expect(Self.fault(in: records, head: RecordHead(number: 5, hash: [1])) == .wrongEnd(number: 5))
    }

    @Test("C9: an export's line is JSON with any instance id, and has the hashed texts unchanged")
    func line() {
        var record = Self.chain(1)[0]
        record.actor = #"mssctl:a\nb"#
        record.instanceID = InstanceID("x\"\n")
        #expect(
            record.jsonLine
                == #"{"number":1,"recordedAt":"2023-11-14T22:13:20.123Z","recordedAtMicroseconds":1700000000123456,"#
                + #""actor":"mssctl:a\nb","source":"192.0.2.1","action":"create-configuration","instanceId":"x\"\n","subject":"ORDERS","#
                + #""before":null,"after":{"online": true},"previousHash":"\#(String(repeating: "0", count: 64))","#
                + #""hash":"\#(HexText.of(record.hash))"}"#)
    }

    @Test("C9: a record at the terminal shows the changes; nothing in it moves the cursor")
    func page() {
        var record = Self.chain(2)[1]
        record.subject = "\u{9b}2J\u{202e}"
        #expect(record.page.contains("online: false   (before: true)"))
        #expect(record.line.hasSuffix(#"\u{9b}2J\u{202e}"#))
    }

    @Test("C9: the times of filters are days or seconds in UTC")
    func times() throws {
        #expect(try RecordsCommand.Filter.time("2023-11-14").milliseconds == 1_699_920_000_000)
        #expect(try RecordsCommand.Filter.time("2023-11-14T22:13:20Z").milliseconds == 1_700_000_000_000)
        #expect(throws: (any Error).self) { try RecordsCommand.Filter.time("yesterday") }
    }
}
