import DeviceProtocol
import Foundation
import SwiftProtobuf
import Testing

@testable import ControlTool

@Suite("Parts of the conformance kit") struct ConformanceValueTests {
    private static func batch(_ after: Int64, _ upto: Int64, _ ids: [Int64]) -> Mss_Device_V1_ChannelBatch {
        .with {
            $0.after = after
            $0.upto = upto
            $0.entries = ids.map { id in .with { $0.oplogID = id } }
        }
    }

    @Test("a ledger takes what a device takes") func ledger() throws {
        let ledger = try ChannelLedger(position: 2).taking([
            Self.batch(0, 2, [1, 2]), Self.batch(1, 4, [2, 4]), Self.batch(4, 9, []), Self.batch(9, 10, [10]),
        ])
        #expect(ledger.ids == [4, 10])
        #expect(ledger.position == 10)
        #expect(ledger.knownBatches == 1)
    }

    @Test(
        "a ledger refuses what no gateway may send",
        arguments: [batch(3, 4, [4]), batch(0, 4, [2, 1]), batch(0, 4, [1, 1]), batch(0, 4, [5]), batch(0, 2, [0])])
    func refuses(batch: Mss_Device_V1_ChannelBatch) {
        #expect(throws: Mismatch.self) { try ChannelLedger(position: 2).taking([batch]) }
    }

    @Test("hand-outs over crashes: what may be shown again, and what not") func once() throws {
        try ClientCases.checkOnce([[1, 2], [2, 3], [4]], reported: [[1], [2, 3], []])
        let broken: [([[Int64]], [Set<Int64>])] = [
            ([[1, 1]], []), ([[1, 3, 2]], []), ([[1], [1, 2]], [[1]]), ([[2], [1]], []),
        ]
        for (runs, reported) in broken {
            #expect(throws: Mismatch.self) { try ClientCases.checkOnce(runs, reported: reported) }
        }
    }

    @Test("garbage is garbage, and padded frames are frames of that size") func bytes() throws {
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

    @Test("names are stable keys: none stands twice") func names() {
        let names = GatewayCases.all.map(\.name)
        #expect(Set(names).count == names.count)
        let others = ClientCases.all.map(\.name)
        #expect(Set(others).count == others.count)
    }

    @Test("every case names a heading of the protocol's text, or the program's contract") func rules() throws {
        let file = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Shared/DeviceProtocol/DeviceProtocol.md")
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

    @Test("placeholders are filled wherever they stand") func placeholders() {
        let filled = ClientBench.filled(["run", "--to={host}:{port}", "{x}"], ["host": "h", "port": "1"])
        #expect(filled == ["run", "--to=h:1", "{x}"])
    }
}
