import DeviceProtocol
import Foundation
import SwiftProtobuf
import TestSupport
import Testing

@testable import Conformance

@Suite("Parts of the conformance command") struct ConformanceValueTests {
    private static func batch(_ after: Int64, _ upto: Int64, _ ids: [Int64]) -> Mss_Device_V1_ChannelBatch {
        .with {
            $0.after = after
            $0.upto = upto
            $0.entries = ids.map { id in .with { $0.oplogID = id } }
        }
    }

    @Test("a ledger accepts the same data as a device") func ledger() throws {
        let ledger = try ChannelLedger(position: 2).applying([
            Self.batch(0, 2, [1, 2]), Self.batch(1, 4, [2, 4]), Self.batch(4, 9, []), Self.batch(9, 10, [10]),
        ])
        #expect(ledger.ids == [4, 10])
        #expect(ledger.position == 10)
        #expect(ledger.knownBatches == 1)
    }

    @Test(
        "a ledger refuses data that no gateway may send",
        arguments: [batch(3, 4, [4]), batch(0, 4, [2, 1]), batch(0, 4, [1, 1]), batch(0, 4, [5]), batch(0, 2, [0])])
    func refuses(batch: Mss_Device_V1_ChannelBatch) {
        #expect(throws: Mismatch.self) { try ChannelLedger(position: 2).applying([batch]) }
    }

    @Test("hand-outs after crashes: which oplogs the app may see again") func once() throws {
        try ClientCrashCases.checkOnce([[1, 2], [2, 3], [4]], reported: [[1], [2, 3], []])
        let broken: [([[Int64]], [Set<Int64>])] = [
            ([[1, 1]], []), ([[1, 3, 2]], []), ([[1], [1, 2]], [[1]]), ([[2], [1]], []),
        ]
        for (runs, reported) in broken {
            #expect(throws: Mismatch.self) { try ClientCrashCases.checkOnce(runs, reported: reported) }
        }
    }

    @Test("garbage is not a frame, and padded frames have the requested size") func bytes() throws {
        for (name, message) in FrameBytes.garbage {
            #expect(throws: (any Error).self, "\(name)") { try Mss_Device_V1_Packet(serializedBytes: message) }
        }
        for size in [20_000, 65_536, 1_048_576] {
            let frame = FrameBytes.padded(.with { $0.ping.number = 7 }, to: size)
            #expect(frame.count == size + 4)
            #expect(try Mss_Device_V1_Packet(serializedBytes: Array(frame.dropFirst(4))).ping.number == 7)
        }
    }

    @Test(
        "a client program's line in each of its forms",
        arguments: [
            #"{"bizType":"B","oplogId":9,"payload":"hi"}"#, #"{"bizType":"B","oplogId":"9","text":"hi","attempt":1}"#,
            #"{"bizType":"B","oplogId":9,"base64":"aGk="}"#,
            #"{"bizType":"B","oplogId":9,"payload":"aGk=","binary":true}"#,
        ])
    func lines(line: String) throws {
        let oplog = try JSONDecoder().decode(ShownOplog.self, from: Data(line.utf8))
        #expect(oplog.bizType == "B" && oplog.id == 9 && oplog.payload == Array("hi".utf8) && oplog.attempt == 1)
    }

    @Test("names are stable and unique keys") func names() {
        let names = GatewayCases.all.map(\.name)
        #expect(Set(names).count == names.count)
        let others = ClientCases.all.map(\.name)
        #expect(Set(others).count == others.count)
    }

    @Test("every case names a heading of the protocol's text, or the program's contract") func rules() throws {
        let file = ProjectFolder.url.appending(path: "Shared/Device/DeviceProtocol/DeviceProtocol.md")
        let text = try String(contentsOf: file, encoding: .utf8)
        let headings = Set(
            text.split(separator: "\n").filter { $0.hasPrefix("#") }
                .map { $0.drop { $0 == "#" }.trimmingCharacters(in: .whitespaces) })
        for rule in GatewayCases.all.map(\.rule) + ClientCases.all.map(\.rule) where rule != "The program's contract" {
            #expect(headings.contains(rule), "\(rule)")
        }
    }

    @Test("not supported is a failure unless it is allowed, and so is an empty run") func report() throws {
        func report(_ verdicts: [ConformanceVerdict], allows: Bool = false) -> ConformanceReport {
            ConformanceReport(
                results: verdicts.map { ConformanceResult(name: "n", rule: "r", verdict: $0, took: .seconds(1)) },
                allowsUnsupported: allows)
        }
        #expect(report([.passed]).isPassed)
        #expect(!report([.passed, .unsupported("x")]).isPassed)
        #expect(report([.passed, .unsupported("x")], allows: true).isPassed)
        #expect(!report([.passed, .failed("x")], allows: true).isPassed)
        #expect(!report([]).isPassed)
        #expect(report([.failed("seen")]).table.contains("FAIL"))
        #expect(try report([.passed]).json().contains(#""passed":1"#))
    }

    @Test("placeholders are filled at any place") func placeholders() {
        let filled = ClientBench.filled(["run", "--to={host}:{port}", "{x}"], ["host": "h", "port": "1"])
        #expect(filled == ["run", "--to=h:1", "{x}"])
    }
}
