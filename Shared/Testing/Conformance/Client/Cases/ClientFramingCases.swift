import DeviceProtocol
import NIOCore
import SwiftProtobuf

/// Frames and their encoding.
enum ClientFramingCases {
    static let all: [ClientCase] = [
        ClientCase("framing/split-at-every-byte", "Framing") { stage in
            try stage.start()
            let session = try await stage.next()
            session.connection.sendSplit(
                ClientSession.connected(), ClientSession.bindResult(),
                ClientSession.frame(ClientSession.batch(0, 2, [1, 2])))
            try await session.expectAcknowledged(2)
            try await stage.expectShown([1, 2])
        },
        ClientCase("framing/many-in-one-write", "Framing") { stage in
            try stage.start()
            let session = try await stage.next()
            let pushes = (1...100).map { ClientSession.frame(ClientSession.batch($0 - 1, $0, [$0])) }
            session.connection.sendBytes(
                FrameBytes.of([ClientSession.connected(), ClientSession.bindResult()] + pushes))
            try await session.expectAcknowledged(100)
            try await stage.expectShown(Array(1...100))
        },
        ClientCase("framing/at-the-limit", "Framing") { stage in
            let session = try await stage.open()
            session.connection.sendBytes(
                FrameBytes.padded(ClientSession.frame(ClientSession.batch(0, 1, [1])), to: 1_048_576))
            try await session.expectAcknowledged(1)
            try await stage.expectShown([1])
        },
        ClientCase("framing/cut-off-frame", "Framing") { stage in
            let session = try await stage.open()
            let bytes = FrameBytes.of([ClientSession.frame(ClientSession.batch(0, 1, [1]))])
            try await session.connection.channel.writeAndFlush(ByteBuffer(bytes: bytes.dropLast(2)))
            session.connection.cut()
            let again = try await stage.accept()
            try Mismatch.unless(again.position == 0, "position 0", seen: "\(again.position)")
            try await stage.expectService(of: again)
        },
        ClientCase("framing/unknown-fields", "Versions", unknownFields),
        ClientCase("framing/unknown-kind", "Versions") { stage in
            let session = try await stage.open()
            session.connection.send(
                ClientSession.frame(
                    ClientSession.batch(0, 9, [9]) { $0.kind = .UNRECOGNIZED(77) }, ClientSession.batch(0, 1, [1])))
            try await session.expectAcknowledged(1)
            try await stage.expectStillShown([1])
        },
        ClientCase("framing/last-of-repeated-field-counts", "Protobuf in brief") { stage in
            let session = try await stage.open()
            session.connection.sendBytes(
                FrameBytes.frame(FrameBytes.field(12, FrameBytes.field(1, 6) + FrameBytes.field(1, 7))))
            _ = try await session.connection.find("Pong 7") { packets in
                packets.first { $0.body == .pong(.with { $0.number = 7 }) }
            }
        },
        ClientCase("framing/ping-numbers", "Heartbeat") { stage in
            let session = try await stage.open()
            for number in [0, 1, 1 << 53, 1 << 63, UInt64.max] { try await session.expectAlive(number) }
        },
    ]

    private static func unknownFields(_ stage: ClientStage) async throws {
        let session = try await stage.open()
        let unknown = FrameBytes.field(77, 5) + FrameBytes.field(78, "new")
        // The fields have descending numbers too.
        let entry = unknown + FrameBytes.field(2, "oplog 1") + FrameBytes.field(1, 1)
        let batch =
            FrameBytes.field(6, entry) + unknown + FrameBytes.field(5, 1) + FrameBytes.field(3, 1)
            + FrameBytes.field(2, ClientStage.bizType)
        session.connection.sendBytes(
            FrameBytes.frame(unknown + FrameBytes.field(5, FrameBytes.field(1, batch) + unknown)))
        try await session.expectAcknowledged(1)
        try await stage.expectShown([1])
    }
}
