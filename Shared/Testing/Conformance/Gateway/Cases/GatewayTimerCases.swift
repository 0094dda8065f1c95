import DeviceProtocol
import SwiftProtobuf

/// Time limits of the gateway, and the heartbeat.
enum GatewayTimerCases {
    static let all: [GatewayCase] = [
        GatewayCase("timers/no-connect", "Timers") { target in
            let connection = try await target.connect()
            try await connection.expectClose(1001, within: .seconds(9))
            try await expectAge(of: connection, atLeast: .milliseconds(4_500))
        },
        GatewayCase("timers/no-handshake", "Timers") { target in
            let connection = try await target.connectWithoutTLS()
            try await connection.expectEnd("the end of the connection 5 s after the accept", within: .seconds(9))
            try await expectAge(of: connection, atLeast: .milliseconds(4_500))
        },
        GatewayCase("timers/silence", "Heartbeat", silence),
        GatewayCase("timers/pings-keep-alive", "Heartbeat", pingsKeepAlive),
        GatewayCase("timers/ping-numbers", "Heartbeat") { target in
            let device = try await target.open(target.fresh())
            for number in [0, 1, 1 << 32, 1 << 53, 1 << 63, UInt64.max] { try await device.expectAlive(number) }
        },
    ]

    private static func expectAge(of connection: FrameConnection, atLeast limit: Duration) async throws {
        let age = connection.startedAt.duration(to: connection.endedAt ?? .now)
        try Mismatch.unless(age >= limit, "the end of the connection not before \(limit)", seen: "\(age)")
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
        try await device.connection.expectClose(1001, within: .seconds(7))
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
