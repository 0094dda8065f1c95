import DeviceProtocol
import NIOCore
import SwiftProtobuf

/// Frames and their encoding.
enum ClientFramingCases {
    static let all: [ClientCase] = [
        ClientCase("framing/split-at-every-byte", "Framing") { setup in
            try setup.start()
            let session = try await setup.next()
            session.connection.sendSplit(
                ClientSession.connected(), ClientSession.bindResult(),
                ClientSession.frame(ClientSession.batch(0, 2, [1, 2])))
            try await session.expectAcknowledged(2)
            try await setup.expectShown([1, 2])
        },
        ClientCase("framing/many-in-one-write", "Framing") { setup in
            try setup.start()
            let session = try await setup.next()
            let pushes = (1...100).map { ClientSession.frame(ClientSession.batch($0 - 1, $0, [$0])) }
            session.connection.sendBytes(
                FrameBytes.of([ClientSession.connected(), ClientSession.bindResult()] + pushes))
            try await session.expectAcknowledged(100)
            try await setup.expectShown(Array(1...100))
        },
        ClientCase("framing/at-the-limit", "Framing") { setup in
            let session = try await setup.open()
            session.connection.sendBytes(
                FrameBytes.padded(ClientSession.frame(ClientSession.batch(0, 1, [1])), to: 1_048_576))
            try await session.expectAcknowledged(1)
            try await setup.expectShown([1])
        },
        ClientCase("framing/cut-off-frame", "Framing") { setup in
            let session = try await setup.open()
            let bytes = FrameBytes.of([ClientSession.frame(ClientSession.batch(0, 1, [1]))])
            try await session.connection.channel.writeAndFlush(ByteBuffer(bytes: bytes.dropLast(2)))
            session.connection.cut()
            let again = try await setup.accept()
            try Mismatch.unless(again.position == 0, "position 0", seen: "\(again.position)")
            try await setup.expectService(of: again)
        },
        ClientCase("framing/unknown-fields", "Versions", unknownFields),
        ClientCase("framing/unknown-kind", "Versions") { setup in
            let session = try await setup.open()
            session.connection.send(
                ClientSession.frame(
                    ClientSession.batch(0, 9, [9]) { $0.kind = .UNRECOGNIZED(77) }, ClientSession.batch(0, 1, [1])))
            try await session.expectAcknowledged(1)
            try await setup.expectStillShown([1])
        },
        ClientCase("framing/last-of-repeated-field-counts", "Protobuf in brief") { setup in
            let session = try await setup.open()
            session.connection.sendBytes(
                FrameBytes.frame(FrameBytes.field(12, FrameBytes.field(1, 6) + FrameBytes.field(1, 7))))
            _ = try await session.connection.find("Pong 7") { packets in
                packets.first { $0.body == .pong(.with { $0.number = 7 }) }
            }
        },
        ClientCase("framing/ping-numbers", "Heartbeat") { setup in
            let session = try await setup.open()
            for number in [0, 1, 1 << 53, 1 << 63, UInt64.max] { try await session.expectAlive(number) }
        },
    ]

    private static func unknownFields(_ setup: ClientCaseSetup) async throws {
        let session = try await setup.open()
        let unknown = FrameBytes.field(77, 5) + FrameBytes.field(78, "new")
        // The fields have descending numbers too.
        let entry = unknown + FrameBytes.field(2, "oplog 1") + FrameBytes.field(1, 1)
        let batch =
            FrameBytes.field(6, entry) + unknown + FrameBytes.field(5, 1) + FrameBytes.field(3, 1)
            + FrameBytes.field(2, ClientCaseSetup.bizType)
        session.connection.sendBytes(
            FrameBytes.frame(unknown + FrameBytes.field(5, FrameBytes.field(1, batch) + unknown)))
        try await session.expectAcknowledged(1)
        try await setup.expectShown([1])
    }
}
