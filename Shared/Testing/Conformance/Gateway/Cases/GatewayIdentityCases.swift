import DeviceProtocol
import SwiftProtobuf

/// Ids of devices, stores, users and instances, and newer connections of a device.
enum GatewayIdentityCases {
    /// Invalid ids, by name.
    private static let badIDs = [
        ("empty", ""), ("too-long", String(repeating: "i", count: 101)), ("nul", "a\0b"),
        ("too-long-in-utf-16", String(repeating: "\u{1F600}", count: 51)),
    ]

    static let all: [GatewayCase] =
        badIDs.flatMap { name, text in
            [
                GatewayCase("ids/device-\(name)", "A connection's life") { target in
                    try await target.expectRefused { $0.deviceID = text }
                },
                GatewayCase("ids/store-\(name)", "A connection's life") { target in
                    try await target.expectRefused { $0.storeID = text }
                },
            ]
        } + [
            GatewayCase("ids/longest", "A connection's life", longestIDs),
            GatewayCase("ids/user-too-long", "A connection's life") { target in
                try await expectBindRefused(target) { $0.userID = String(repeating: "u", count: 101) }
            },
            GatewayCase("ids/session-too-long", "A connection's life") { target in
                try await expectBindRefused(target) { $0.sessionID = String(repeating: "s", count: 4_097) }
            },
            GatewayCase("ids/unknown-instance", "Close codes") { target in
                var identity = target.fresh()
                identity.instance = "no_such_instance"
                let connection = try await target.connect()
                connection.send(identity.connect)
                try await connection.expectClose(5001)
            },
            GatewayCase("connection/newer-one-of-the-device", "Close codes", newerConnection),
            GatewayCase("connection/newer-version", "Versions") { target in
                _ = try await target.open(target.fresh()) { $0.protocolVersion = 4_000_000_000 }
            },
        ]

    private static func expectBindRefused(
        _ target: GatewayTarget, _ change: (inout Mss_Device_V1_Bind) -> Void
    ) async throws {
        let device = try await target.open(target.fresh(), binds: false)
        var packet = device.identity.bindFrame(1)
        change(&packet.bind)
        device.connection.send(packet)
        try await device.connection.expectClose(5000)
        let results = device.connection.packets.compactMap {
            if case .bindResult(let result)? = $0.body { result } else { nil }
        }
        try Mismatch.unless(
            results.map(\.accepted) == [false] && results.map(\.bindNumber) == [1],
            "BindResult 1 refused before Close 5000", seen: device.connection.summary)
    }

    private static func longestIDs(_ target: GatewayTarget) async throws {
        let mark = target.fresh().device
        let longest = mark + String(repeating: "\u{1F600}", count: (100 - mark.utf16.count) / 2)
        let filled = longest + String(repeating: "x", count: 100 - longest.utf16.count)
        var identity = target.fresh()
        (identity.device, identity.store, identity.user) = (filled, filled, filled)
        let device = try await target.open(identity)
        let ids = try await target.api.push(["long"], to: filled)
        try await device.expect(exactly: ids)
    }

    private static func newerConnection(_ target: GatewayTarget) async throws {
        let identity = target.fresh()
        let old = try await target.open(identity)
        let young = try await target.open(identity)
        try await old.connection.expectClose(5002)
        let ids = try await target.api.push(["for the newer one"], to: identity.user)
        try await young.expect(exactly: ids)
        try Mismatch.unless(old.batches.isEmpty, "nothing on the older connection", seen: old.connection.summary)
    }
}
