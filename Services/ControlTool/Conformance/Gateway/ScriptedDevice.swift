import DeviceProtocol
import SwiftProtobuf

/// A connection that the gateway has greeted, and the steps that scripts are made of.
struct ScriptedDevice: Sendable {
    let connection: FrameConnection
    let identity: DeviceIdentity
    /// The business type that this device looks at; an instance may push others to everybody.
    let bizType: String
    /// Where the device stood when it connected.
    let position: Int64
    let greeting: Mss_Device_V1_Connected
    /// Rise within the connection, whoever asks: an answer is known by its number alone.
    let requestNumbers = RequestNumbers()

    // MARK: Waiting

    /// The gateway answers, so it has taken all frames before and has not closed.
    func expectAlive(_ number: UInt64 = 4_242) async throws {
        connection.send(.with { $0.ping.number = number })
        _ = try await connection.find("Pong \(number) and no Close") { packets in
            if let close = packets.last(where: { if case .close = $0.body { true } else { false } }) {
                throw Mismatch(expected: "no Close", seen: PacketSummary.text(of: close))
            }
            return packets.last { $0.body == .pong(.with { $0.number = number }) }
        }
    }

    /// The bind took effect.
    func expectBound(_ number: UInt32) async throws {
        let result = try await connection.find("BindResult \(number)") { packets in
            packets.lazy.map(\.bindResult).first { $0.bindNumber == number }
        }
        try Mismatch.unless(result.accepted, "BindResult \(number) accepted", seen: connection.summary)
    }

    /// The backlog of the opening, or of this bind, has come.
    func expectCaughtUp(_ number: UInt32 = 1) async throws {
        _ = try await connection.find("CaughtUp \(number)", within: .seconds(15)) { packets in
            packets.first { $0.body == .caughtUp(.with { $0.bindNumber = number }) }
        }
    }

    /// Batches of the looked-at business type.
    var batches: [Mss_Device_V1_ChannelBatch] { connection.batches.filter { $0.bizType == bizType } }

    /// What a device that stores all that comes has of its channel now.
    func ledger() throws -> ChannelLedger { try ChannelLedger(position: position).taking(batches) }

    /// Waits until the channel has come up to an id, then gives the ledger.
    func expect(upto id: Int64, within limit: Duration = .seconds(15)) async throws -> ChannelLedger {
        try await connection.find("\(bizType) up to \(id)", within: limit) { _ in
            let ledger = try ledger()
            return ledger.position >= id ? ledger : nil
        }
    }

    /// Waits until the channel has come up to the last of these ids, and has exactly these.
    @discardableResult
    func expect(exactly ids: [Int64], within limit: Duration = .seconds(15)) async throws -> ChannelLedger {
        let ledger = try await expect(upto: ids.last ?? 0, within: limit)
        try Mismatch.unless(ledger.ids == ids, "the oplogs \(ids)", seen: "\(ledger.ids)")
        return ledger
    }

    // MARK: Sending

    /// Says that the user's channel is on disk up to here.
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

    /// Says that the app has processed these, and waits for the answer.
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

    /// The report has been answered so many times.
    func expectRecorded(_ report: UInt64, times: Int) async throws {
        _ = try await connection.find("ConfirmRecorded \(report), \(times) in all") { _ in
            recorded(report) >= times ? true : nil
        }
    }

    private func recorded(_ report: UInt64) -> Int {
        connection.packets.count { $0.body == .confirmRecorded(.with { $0.reportID = report }) }
    }

    /// Goes by its own will, and waits until the gateway has let go.
    func leave() async throws {
        connection.send(.with { $0.close.code = 1000 })
        try await connection.expectEnd()
    }
}
