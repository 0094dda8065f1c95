import DeviceProtocol
import SwiftProtobuf

/// Frames and their encoding, well-formed and not.
enum GatewayFramingCases {
    static let all: [GatewayCase] = [
        GatewayCase("framing/split-at-every-byte", "Framing") { target in
            let connection = try await target.connect()
            connection.sendSplit(target.fresh().connect, .with { $0.ping.number = 7 })
            try await connection.expect(.opens)
            try await connection.expect(.pong)
        },
        GatewayCase("framing/many-in-one-write", "Framing", manyInOneWrite),
        GatewayCase("framing/zero-length", "Framing") { target in
            let device = try await target.open(target.fresh())
            device.connection.sendBytes(FrameBytes.length(0) + FrameBytes.length(0))
            try await device.expectAlive()
        },
        GatewayCase("framing/at-the-limit", "Framing") { target in
            let device = try await target.open(target.fresh())
            try Mismatch.unless(
                device.greeting.maxFrameBytes == 65_536, "max_frame_bytes 65536",
                seen: "\(device.greeting.maxFrameBytes)")
            device.connection.sendBytes(FrameBytes.padded(.with { $0.ping.number = 7 }, to: 65_536))
            try await device.connection.expect(.pong)
        },
        GatewayCase("framing/largest-length", "Framing") { target in
            let device = try await target.open(target.fresh())
            device.connection.sendBytes([0xFF, 0xFF, 0xFF, 0xFF])
            try await device.connection.expectClose(5000)
        },
        GatewayCase("framing/cut-off-frame", "Framing", cutOffFrame),
        GatewayCase("framing/unknown-fields", "Versions") { target in
            let connection = try await target.connect()
            connection.sendBytes(FrameBytes.padded(target.fresh().connect, to: 20_000))
            try await connection.expect(.opens)
            let unknown = FrameBytes.field(77, 5) + FrameBytes.field(78, "new")
            connection.sendBytes(FrameBytes.frame(FrameBytes.field(12, unknown + FrameBytes.field(1, 7)) + unknown))
            try await connection.expect(.pong)
        },
        GatewayCase("framing/unknown-enumeration-value", "Versions") { target in
            let device = try await target.open(target.fresh())
            device.acknowledge(upto: 5, kind: .UNRECOGNIZED(99))
            try await device.expectAlive()
        },
        GatewayCase("framing/last-of-repeated-field-counts", "Protobuf in brief") { target in
            let device = try await target.open(target.fresh())
            device.connection.sendBytes(
                FrameBytes.frame(FrameBytes.field(12, FrameBytes.field(1, 6) + FrameBytes.field(1, 7))))
            try await device.connection.expect(.pong)
        },
        GatewayCase("framing/fields-in-any-order", "Protobuf in brief") { target in
            let identity = target.fresh()
            let fields =
                FrameBytes.field(4, identity.store) + FrameBytes.field(3, identity.device)
                + FrameBytes.field(2, identity.instance) + FrameBytes.field(1, 1)
            let connection = try await target.connect()
            connection.sendBytes(FrameBytes.frame(FrameBytes.field(1, fields)))
            try await connection.expect(.opens)
        },
        GatewayCase("framing/unpacked-integers", "Protobuf in brief") { target in
            let device = try await target.open(target.fresh())
            let ids = (1...3).flatMap { FrameBytes.field(4, UInt64($0)) }
            let channel = FrameBytes.field(2, target.api.bizType) + FrameBytes.field(3, 1) + ids
            device.connection.sendBytes(
                FrameBytes.frame(FrameBytes.field(7, FrameBytes.field(1, 7) + FrameBytes.field(2, channel))))
            try await device.connection.expect(.recorded)
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
        try Mismatch.unless(
            !first.connection.isEnded, "an open connection with half a frame", seen: first.connection.summary)
        first.connection.cut()
        _ = try await target.open(identity)
    }
}
