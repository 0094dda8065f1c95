import PostgreSQL
package import SyncModel

/// The push tokens of devices, and the devices to wake (m0008_wake_ups).
package enum PushTokenStore {
    /// Records the push token of a device that connects; run it after `DeviceSessionStore.register`.
    ///
    /// - Returns: nil when the device names no token, as most do: then no statement is needed.
    package static func record(_ session: DeviceSessionStore.Registration) -> Query<Void>? {
        session.pushToken.map { token in
            let parameters: [PostgresValue] = [
                .text(session.instanceID.text), .text(session.deviceID.text), .text(session.userID?.text ?? ""),
                .int16(token.provider.rawValue), .text(token.text), .text(session.gatewayID),
                .int64(Int64(clamping: session.connectionNumber)),
            ]
            return Query(PostgresStatement("SELECT tell_push_token($1, $2, $3, $4, $5, $6, $7)", parameters)) { _ in }
        }
    }

    /// A device to wake.
    package struct SleepingDevice: Sendable, Hashable {
        package var instanceID: InstanceID
        package var deviceID: DeviceID
        package var token: PushToken
    }

    /// Claims the devices that are to be woken now.
    ///
    /// - Parameters:
    ///   - ackTimeout: the time in which a connected device must acknowledge an oplog.
    ///   - interval: the shortest time between two wake-ups of a device that does not connect.
    ///   - reach: after an absence of all notifiers, older oplogs wake no device.
    ///   - limit: the largest number of devices; the others are found again after `ackTimeout`.
    package static func claim(
        ackTimeout: Duration, interval: Duration, reach: Duration, limit: Int
    ) -> Query<[SleepingDevice]> {
        let sql = """
            SELECT found_provider, found_instance, found_device, found_token
            FROM claim_wake_ups(
                make_interval(secs => $1 / 1000.0), make_interval(secs => $2 / 1000.0),
                make_interval(secs => $3 / 1000.0), $4)
            """
        let parameters: [PostgresValue] = [
            .int64(ackTimeout.wholeMilliseconds), .int64(interval.wholeMilliseconds), .int64(reach.wholeMilliseconds),
            .int32(Int32(clamping: limit)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.compactDecode { columns throws(PostgresError) -> SleepingDevice? in
                // A nil value means: only a newer build knows the provider.
                guard let provider = PushToken.Provider(rawValue: try columns.next()) else { return nil }
                return try SleepingDevice(
                    instanceID: columns.next(), deviceID: columns.next(),
                    token: PushToken(provider: provider, text: columns.next()))
            }
        }
    }

    /// Records that the providers have accepted wake-ups for these tokens.
    package static func recordWoken(_ tokens: [PushToken]) -> Query<Void> {
        Query(PostgresStatement("SELECT note_wake_ups($1)", [.textArray(tokens.map(\.text))])) { _ in }
    }

    /// Removes tokens that the providers report as invalid.
    package static func forget(_ tokens: [PushToken]) -> Query<Void> {
        Query(PostgresStatement("SELECT forget_push_tokens($1)", [.textArray(tokens.map(\.text))])) { _ in }
    }
}
