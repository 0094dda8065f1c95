import DeviceProtocol
import SwiftProtobuf

/// Transport, framing, timers.
extension GatewayCases {
    static let transport: [Case] = [
        Case("transport/alpn", "Transport") { target in
            let connection = try await target.connect(applicationProtocols: ["h2", "mss/1"])
            try Mismatch.unless(
                connection.negotiated == "mss/1", "ALPN mss/1", seen: connection.negotiated ?? "no name")
        },
        Case("transport/no-alpn", "Transport") { target in
            let connection = try await target.connect(applicationProtocols: [])
            connection.send(target.fresh().connect)
            try await expect(.opens, on: connection)
        },
    ]

    static let framing: [Case] = [
        Case("framing/split-at-every-byte", "Framing") { target in
            let connection = try await target.connect()
            connection.sendSplit(target.fresh().connect, .with { $0.ping.number = 7 })
            try await expect(.opens, on: connection)
            try await expect(.pong, on: connection)
        },
        Case("framing/many-in-one-write", "Framing", manyInOneWrite),
        Case("framing/zero-length", "Framing") { target in
            let device = try await target.open(target.fresh())
            device.connection.sendBytes(FrameBytes.length(0) + FrameBytes.length(0))
            try await device.expectAlive()
        },
        Case("framing/at-the-limit", "Framing") { target in
            let device = try await target.open(target.fresh())
            try Mismatch.unless(
                device.greeting.maxFrameBytes == 65_536, "max_frame_bytes 65536",
                seen: "\(device.greeting.maxFrameBytes)")
            device.connection.sendBytes(FrameBytes.padded(.with { $0.ping.number = 7 }, to: 65_536))
            try await expect(.pong, on: device.connection)
        },
        Case("framing/largest-length", "Framing") { target in
            let device = try await target.open(target.fresh())
            device.connection.sendBytes([0xFF, 0xFF, 0xFF, 0xFF])
            try await expectClose(5000, on: device.connection)
        },
        Case("framing/cut-off-frame", "Framing", cutOffFrame),
        Case("framing/unknown-fields", "Versions") { target in
            let connection = try await target.connect()
            connection.sendBytes(FrameBytes.padded(target.fresh().connect, to: 20_000))
            try await expect(.opens, on: connection)
            let unknown = FrameBytes.field(77, 5) + FrameBytes.field(78, "new")
            connection.sendBytes(FrameBytes.frame(FrameBytes.field(12, unknown + FrameBytes.field(1, 7)) + unknown))
            try await expect(.pong, on: connection)
        },
        Case("framing/unknown-enumeration-value", "Versions") { target in
            let device = try await target.open(target.fresh())
            device.acknowledge(upto: 5, kind: .UNRECOGNIZED(99))
            try await device.expectAlive()
        },
        Case("framing/last-of-repeated-field-counts", "Protobuf in brief") { target in
            let device = try await target.open(target.fresh())
            device.connection.sendBytes(
                FrameBytes.frame(FrameBytes.field(12, FrameBytes.field(1, 6) + FrameBytes.field(1, 7))))
            try await expect(.pong, on: device.connection)
        },
        Case("framing/fields-in-any-order", "Protobuf in brief") { target in
            let identity = target.fresh()
            let fields =
                FrameBytes.field(4, identity.store) + FrameBytes.field(3, identity.device)
                + FrameBytes.field(2, identity.instance) + FrameBytes.field(1, 1)
            let connection = try await target.connect()
            connection.sendBytes(FrameBytes.frame(FrameBytes.field(1, fields)))
            try await expect(.opens, on: connection)
        },
        Case("framing/unpacked-integers", "Protobuf in brief") { target in
            let device = try await target.open(target.fresh())
            let ids = (1...3).flatMap { FrameBytes.field(4, UInt64($0)) }
            let channel = FrameBytes.field(2, target.api.bizType) + FrameBytes.field(3, 1) + ids
            device.connection.sendBytes(
                FrameBytes.frame(FrameBytes.field(7, FrameBytes.field(1, 7) + FrameBytes.field(2, channel))))
            try await expect(.recorded, on: device.connection)
        },
    ]

    private static func manyInOneWrite(_ target: GatewayTarget) async throws {
        let device = try await target.open(target.fresh())
        let numbers = (1...200).map { UInt64($0) }
        device.connection.sendBytes(
            FrameBytes.of(numbers.map { number in .with { $0.ping.number = number } }))
        _ = try await device.connection.find("200 Pongs in order") { packets in
            let pongs = packets.compactMap { if case .pong(let pong)? = $0.body { pong.number } else { nil } }
            return pongs == numbers ? true : nil
        }
    }

    private static func cutOffFrame(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let first = try await target.open(identity)
        first.connection.sendBytes(Array(FrameBytes.of([identity.bindFrame(2)]).dropLast(3)))
        try await first.connection.linger(.milliseconds(300))
        try Mismatch.unless(!first.connection.isEnded, "patience with half a frame", seen: first.connection.summary)
        first.connection.cut()
        _ = try await target.open(identity)
    }

    static let timers: [Case] = [
        Case("timers/no-connect", "Timers") { target in
            let connection = try await target.connect()
            try await expectClose(1001, on: connection, within: .seconds(9))
            try await expectAge(of: connection, atLeast: .milliseconds(4_500))
        },
        Case("timers/no-handshake", "Timers") { target in
            let connection = try await target.connectWithoutTLS()
            try await connection.expectEnd("the end 5 s after the accept", within: .seconds(9))
            try await expectAge(of: connection, atLeast: .milliseconds(4_500))
        },
        Case("timers/silence", "Heartbeat", silence),
        Case("timers/pings-keep-alive", "Heartbeat", pingsKeepAlive),
        Case("timers/ping-numbers", "Heartbeat") { target in
            let device = try await target.open(target.fresh())
            for number in [0, 1, 1 << 32, 1 << 53, 1 << 63, UInt64.max] { try await device.expectAlive(number) }
        },
    ]

    private static func expectAge(of connection: FrameConnection, atLeast limit: Duration) async throws {
        let age = connection.startedAt.duration(to: connection.endedAt ?? .now)
        try Mismatch.unless(age >= limit, "the end not before \(limit)", seen: "\(age)")
    }

    private static func withInterval(_ target: GatewayTarget) async throws -> ScriptedDevice {
        let device = try await target.open(target.fresh())
        guard device.greeting.maxHeartbeatSeconds > 0 else {
            throw NotSupported("Connected names no max_heartbeat_seconds")
        }
        device.connection.send(
            .with {
                $0.ping.number = 1
                $0.ping.intervalSeconds = 1
            })
        return device
    }

    private static func silence(_ target: GatewayTarget) async throws {
        let device = try await withInterval(target)
        let start = ContinuousClock.now
        try await expectClose(1001, on: device.connection, within: .seconds(7))
        let silence = start.duration(to: device.connection.endedAt ?? .now)
        try Mismatch.unless(silence >= .milliseconds(2_300), "Close after 2.5 intervals of 1 s", seen: "\(silence)")
    }

    private static func pingsKeepAlive(_ target: GatewayTarget) async throws {
        let device = try await withInterval(target)
        for number in 2...5 {
            try await device.connection.linger(.seconds(1))
            try await device.expectAlive(UInt64(number))
        }
    }
}
