import DeviceProtocol
import SwiftProtobuf
import Testing

@testable import Gateway

/// Every frame in every state (DeviceProtocol.md, A connection's life). `mssctl conformance gateway` tests the same
/// over the wire with any gateway.
@Suite("SEC9: state × frame")
struct SessionFrameMatrixTests {
    /// The effect of a frame in each state: the close code, or nil.
    private struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        var awaiting: CloseCode? = .protocolViolation
        var opening: CloseCode?
        var open: CloseCode?
        let fill: @Sendable (inout Mss_Device_V1_Packet) -> Void
        var testDescription: String { name }
    }

    private static func connect(_ change: @escaping @Sendable (inout Mss_Device_V1_Connect) -> Void = { _ in })
        -> @Sendable (inout Mss_Device_V1_Packet) -> Void
    {
        {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "i"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
            change(&$0.connect)
        }
    }

    private static let violation = CloseCode.protocolViolation

    private static let rows: [Row] = [
        Row(name: "connect", awaiting: nil, opening: violation, open: violation, fill: connect()),
        Row(
            name: "connect without version", opening: violation, open: violation,
            fill: connect { $0.protocolVersion = 0 }),
        Row(name: "connect without device", opening: violation, open: violation, fill: connect { $0.deviceID = "" }),
        Row(name: "connect with NUL", opening: violation, open: violation, fill: connect { $0.storeID = "a\0" }),
        Row(
            name: "connect, 201 suspended", opening: violation, open: violation,
            fill: connect {
                $0.suspended = (0...200).map { "B\($0)" }
            }),
        Row(name: "connect, bind 0", opening: violation, open: violation, fill: connect { $0.bind.userID = "u" }),
        Row(
            name: "connect, unknown app", awaiting: .unknownInstance, opening: violation, open: violation,
            fill: connect { $0.instanceID = "other" }),
        Row(name: "bind") {
            $0.bind.bindNumber = 2
            $0.bind.userID = "u"
        },
        Row(name: "bind that does not rise", opening: violation, open: violation) { $0.bind.bindNumber = 1 },
        Row(name: "bind with a long user", opening: violation, open: violation) {
            $0.bind.bindNumber = 2
            $0.bind.userID = String(repeating: "u", count: 101)
        },
        Row(name: "stored ack") { $0.storedAck.channels = [.with { $0.upto = 1 }] },
        Row(name: "confirm report") { $0.confirmReport.reportID = 1 },
        Row(name: "foreground") { $0.foreground.foreground = true },
        Row(name: "subscriptions") { $0.subscriptions.suspended = ["B"] },
        Row(name: "subscriptions, 201", opening: violation, open: violation) {
            $0.subscriptions.suspended = (0...200).map { "B\($0)" }
        },
        Row(name: "history") { $0.historyRequest.requestNumber = 1 },
        Row(name: "summary") { $0.summaryRequest.requestNumber = 1 },
        Row(name: "operations") {
            $0.submitOperations.number = 1
            $0.submitOperations.operations = [.with { $0.operationID = "o" }]
        },
        Row(name: "operations, number 0", opening: violation, open: violation) {
            $0.submitOperations.operations = [.with { $0.operationID = "o" }]
        },
        Row(name: "operations, none", opening: violation, open: violation) { $0.submitOperations.number = 1 },
        Row(name: "operations, 65", opening: violation, open: violation) {
            $0.submitOperations.number = 1
            $0.submitOperations.operations = (0...64).map { n in .with { $0.operationID = "o\(n)" } }
        },
        Row(name: "ping") { $0.ping.number = 1 },
        Row(name: "pong") { $0.pong.number = 1 },
        Row(name: "close", opening: .normal, open: .normal) { $0.close.code = 1_000 },
        // Frames that only a gateway sends, and unknown bodies: connections of newer devices stay open.
        Row(name: "connected") { $0.connected.heartbeatSeconds = 1 },
        Row(name: "bind result") { $0.bindResult.accepted = true },
        Row(name: "push") { $0.push.batches = [] },
        Row(name: "confirm recorded") { $0.confirmRecorded.reportID = 1 },
        Row(name: "caught up") { $0.caughtUp.bindNumber = 1 },
        Row(name: "session state") { $0.sessionState.bindNumber = 1 },
        Row(name: "history page") { $0.historyPage.requestNumber = 1 },
        Row(name: "summary page") { $0.summaryPage.requestNumber = 1 },
        Row(name: "operations taken") { $0.operationsTaken.number = 1 },
        Row(name: "ownership taken") { $0.ownershipTaken.bindNumber = 1 },
        Row(name: "unknown body") { $0.body = nil },
    ]

    @Test("SEC9: each frame in each state has its fixed close code or none; a closed session ignores all")
    func matrix() {
        for row in Self.rows {
            var bench = SessionBench()
            #expect(bench.receive(row.fill).closeCode == row.awaiting, "\(row.name) awaiting")
            #expect((bench.machine.isClosed) == (row.awaiting != nil), "\(row.name) awaiting")

            bench = SessionBench()
            _ = bench.receive(Self.connect { $0.bind.bindNumber = 1 })
            #expect(bench.machine.isOpening)
            #expect(bench.receive(row.fill).closeCode == row.opening, "\(row.name) opening")
            #expect((bench.machine.isClosed) == (row.opening != nil), "\(row.name) opening")

            bench = SessionBench()
            bench.open()
            #expect(bench.machine.isOpen)
            #expect(bench.receive(row.fill).closeCode == row.open, "\(row.name) open")
            #expect((bench.machine.isClosed) == (row.open != nil), "\(row.name) open")

            bench.handle(.disconnected)
            #expect(bench.receive(row.fill).isEmpty, "\(row.name) closed")
        }
    }

    @Test("SEC9: the matrix has every body of a frame")
    func complete() {
        let bodies = Set(
            Self.rows.compactMap { row in
                Mss_Device_V1_Packet.with(row.fill).body.map { String("\($0)".prefix { $0 != "(" }) }
            })
        #expect(bodies.count == 22, "DeviceProtocol.md, Packets and their fields")
    }

    @Test("SEC9, SEC11: a refusal for its rate closes once, in every state, with its code")
    func refused() {
        let refusal = RateRefusal(code: .tooManyFrames, reason: "more frames than a device may send")
        var bench = SessionBench()
        #expect(bench.handle(.overRate(refusal)).closeCode == .tooManyFrames)
        #expect(bench.handle(.overRate(refusal)).isEmpty)
        bench = SessionBench()
        bench.open()
        #expect(bench.handle(.overRate(refusal)).closeCode == .tooManyFrames)
        #expect(bench.receive { $0.ping.number = 1 }.isEmpty)
    }
}
