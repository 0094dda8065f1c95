import PostgreSQL
package import SyncModel

/// Where devices can be woken, and which are to be (m0005_wake_up).
package enum PushTokenStore {
    /// Notes what a device that connects says of it; run after `DeviceSessionStore.register`.
    ///
    /// - Returns: nil when it says nothing, as most do: then nothing is asked of the database.
    package static func tell(_ session: DeviceSessionStore.Registration) -> Query<Void>? {
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
    package struct Sleeper: Sendable, Hashable {
        package var instanceID: InstanceID
        package var deviceID: DeviceID
        package var token: PushToken
    }

    /// Claims the devices that are to be woken now.
    ///
    /// - Parameters:
    ///   - patience: how long a connected device may leave something unacknowledged.
    ///   - interval: how long a device that was woken and did not come is left alone.
    ///   - reach: what is older, when nobody has looked for so long, wakes nobody.
    ///   - limit: how many at the most; the others are found again after `patience`.
    package static func claim(
        patience: Duration, interval: Duration, reach: Duration, limit: Int
    ) -> Query<[Sleeper]> {
        let sql = """
            SELECT found_instance, found_device, found_provider, found_token
            FROM claim_wake_ups(
                make_interval(secs => $1 / 1000.0), make_interval(secs => $2 / 1000.0),
                make_interval(secs => $3 / 1000.0), $4)
            """
        let parameters: [PostgresValue] = [
            .int64(patience.wholeMilliseconds), .int64(interval.wholeMilliseconds), .int64(reach.wholeMilliseconds),
            .int32(Int32(clamping: limit)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in
            rows.compactMap { row in
                // A provider that a newer build knows.
                guard let provider = PushToken.Provider(rawValue: row.int16(2)) else { return nil }
                return Sleeper(
                    instanceID: InstanceID(row.text(0)), deviceID: DeviceID(row.text(1)),
                    token: PushToken(provider: provider, text: row.text(3)))
            }
        }
    }

    /// The providers have taken wake-ups for these.
    package static func noteWoken(_ tokens: [PushToken]) -> Query<Void> {
        Query(PostgresStatement("SELECT note_wake_ups($1)", [.textArray(tokens.map(\.text))])) { _ in }
    }

    /// The providers call these gone.
    package static func forget(_ tokens: [PushToken]) -> Query<Void> {
        Query(PostgresStatement("SELECT forget_push_tokens($1)", [.textArray(tokens.map(\.text))])) { _ in }
    }
}
