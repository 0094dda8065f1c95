import DeviceProtocol
import SwiftProtobuf

/// An accepted connection, with the steps of scripts.
struct ScriptedDevice: Sendable {
    let connection: FrameConnection
    let identity: DeviceIdentity
    /// The Sync ID that this device checks. Global pushes of the instance can have others.
    let bizType: String
    /// The position at connect.
    let position: Int64
    let greeting: Mss_Device_V1_Connected
    /// Unique within the connection, because a reply names only its number.
    let requestNumbers = RequestNumbers()

    // MARK: Waiting

    /// Checks that the gateway answers a ping. Then it has read all earlier frames and has not closed the connection.
    func expectAlive(_ number: UInt64 = 4_242) async throws {
        connection.send(.with { $0.ping.number = number })
        _ = try await connection.find("Pong \(number) and no Close") { packets in
            if let close = packets.last(where: { if case .close = $0.body { true } else { false } }) {
                throw Mismatch(expected: "no Close", seen: PacketSummary.text(of: close))
            }
            return packets.last { $0.body == .pong(.with { $0.number = number }) }
        }
    }

    /// Waits until the bind is accepted.
    func expectBound(_ number: UInt32) async throws {
        let result = try await connection.find("BindResult \(number)") { packets in
            packets.lazy.map(\.bindResult).first { $0.bindNumber == number }
        }
        try Mismatch.unless(result.accepted, "BindResult \(number) accepted", seen: connection.summary)
    }

    /// Waits for the end of the backlog of this bind.
    func expectCaughtUp(_ number: UInt32 = 1) async throws {
        _ = try await connection.find("CaughtUp \(number)", within: .seconds(15)) { packets in
            packets.first { $0.body == .caughtUp(.with { $0.bindNumber = number }) }
        }
    }

    /// Received batches of the Sync ID.
    var batches: [Mss_Device_V1_ChannelBatch] { connection.batches.filter { $0.bizType == bizType } }

    /// The channel of a device that stores all received batches.
    func ledger() throws -> ChannelLedger { try ChannelLedger(position: position).applying(batches) }

    /// Waits until the channel reaches an id. Returns the ledger.
    func expect(upto id: Int64, within limit: Duration = .seconds(15)) async throws -> ChannelLedger {
        try await connection.find("\(bizType) up to \(id)", within: limit) { _ in
            let ledger = try ledger()
            return ledger.position >= id ? ledger : nil
        }
    }

    /// Waits until the channel reaches the last id, and checks that it has exactly these oplogs.
    @discardableResult
    func expect(exactly ids: [Int64], within limit: Duration = .seconds(15)) async throws -> ChannelLedger {
        let ledger = try await expect(upto: ids.last ?? 0, within: limit)
        try Mismatch.unless(ledger.ids == ids, "the oplogs \(ids)", seen: "\(ledger.ids)")
        return ledger
    }

    /// Acknowledges batches until the channel reaches an id.
    func drain(upto id: Int64) async throws -> ChannelLedger {
        var acknowledged: Int64 = 0
        return try await connection.find("\(bizType) up to \(id)", within: .seconds(20)) { _ in
            let ledger = try ledger()
            if ledger.position > acknowledged {
                acknowledged = ledger.position
                acknowledge(upto: acknowledged)
            }
            return ledger.position >= id ? ledger : nil
        }
    }

    /// Waits for the page that answers a request. A gateway that continues without a page does not support requests.
    func findPage<Page>(
        _ expected: String, _ find: ([Mss_Device_V1_Packet]) -> Page?
    ) async throws -> Page {
        try await expectAlive()
        do {
            return try await connection.find(expected, within: .seconds(5), find)
        } catch let mismatch as Mismatch {
            if connection.isEnded { throw mismatch }
            throw NotSupported("the gateway ignores the request")
        }
    }

    // MARK: Sending

    /// Acknowledges the channel up to an id.
    func acknowledge(upto: Int64, bind: UInt32 = 1, bizType: String? = nil, kind: Mss_Device_V1_ChannelKind = .user) {
        connection.send(
            .with {
                $0.storedAck.channels = [
                    .with {
                        $0.kind = kind
                        $0.bizType = bizType ?? self.bizType
                        $0.bindNumber = bind
                        $0.upto = upto
                    }
                ]
            })
    }

    /// Confirms oplogs and waits for the reply.
    func confirm(_ ids: [Int64], report: UInt64) async throws {
        let before = recorded(report)
        connection.send(
            .with {
                $0.confirmReport.reportID = report
                $0.confirmReport.channels = [
                    .with {
                        $0.bizType = bizType
                        $0.bindNumber = 1
                        $0.oplogIds = ids
                    }
                ]
            })
        try await expectRecorded(report, times: before + 1)
    }

    /// Waits until the report has been answered this many times.
    func expectRecorded(_ report: UInt64, times: Int) async throws {
        _ = try await connection.find("ConfirmRecorded \(report), \(times) times") { _ in
            recorded(report) >= times ? true : nil
        }
    }

    private func recorded(_ report: UInt64) -> Int {
        connection.packets.count { $0.body == .confirmRecorded(.with { $0.reportID = report }) }
    }

    /// Sends `Close` and waits until the gateway ends the connection.
    func leave() async throws {
        connection.send(.with { $0.close.code = 1000 })
        try await connection.expectEnd()
    }
}
