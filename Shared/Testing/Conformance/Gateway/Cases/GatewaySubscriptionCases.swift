import DeviceProtocol
import SwiftProtobuf

/// Suspended Sync IDs.
enum GatewaySubscriptionCases {
    private static let rule = "Subscriptions"

    static let all: [GatewayCase] = [
        GatewayCase("subscriptions/in-connect", rule, suspendedInConnect),
        GatewayCase("subscriptions/later", rule, suspendedLater),
    ]

    /// The protocol got subscriptions and `max_heartbeat_seconds` in the same version.
    private static func needsSubscriptions(_ device: ScriptedDevice) throws(NotSupported) {
        if device.greeting.maxHeartbeatSeconds == 0 { throw NotSupported("the gateway is older than subscriptions") }
    }

    private static func suspendedInConnect(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let early = try await target.api.push(["early"], to: identity.user)
        let device = try await target.open(identity) { $0.suspended = [target.api.bizType] }
        try needsSubscriptions(device)
        try await device.expectCaughtUp()
        let live = try await target.api.push(["live"], to: identity.user)
        try await device.connection.linger(.seconds(1))
        try Mismatch.unless(
            device.batches.isEmpty, "no data of a suspended Sync ID", seen: device.connection.summary)
        device.connection.send(.with { $0.subscriptions = .init() })
        try await device.expect(exactly: early + live)
    }

    private static func suspendedLater(_ target: GatewayTarget) async throws {
        let device = try await target.open(target.fresh())
        try needsSubscriptions(device)
        let early = try await target.api.push(["early"], to: device.identity.user)
        try await device.expect(exactly: early)
        device.acknowledge(upto: early[0])
        device.connection.send(.with { $0.subscriptions.suspended = [target.api.bizType] })
        try await device.expectAlive()
        let away = try await target.api.push(["away"], to: device.identity.user)
        try await device.connection.linger(.seconds(1))
        try Mismatch.unless(
            try device.ledger().ids == early, "no data of a suspended Sync ID", seen: device.connection.summary)
        // Each list replaces the previous one.
        device.connection.send(.with { $0.subscriptions.suspended = ["NO-SUCH-TYPE"] })
        try await device.expect(exactly: early + away)
    }
}
