import PostgreSQL
package import SyncModel

/// Operations of devices on their way to tenants (m0006_relay).
///
/// **Ordering law.** Operations of an instance are numbered and put into the lines of their entities under its lock,
/// which is held to commit; one is done when it is the first in each of its lines, and leaves them only when its answer
/// has been told. So what is done to an entity, and what devices hear of it, is in the order in which operations were
/// taken, with any number of relays.
package enum DeviceOperationStore {
    /// One to take.
    package struct Taking: Sendable {
        package var instanceID: InstanceID
        package var deviceID: DeviceID
        package var userID: UserID
        /// The session's id, sealed; empty: it is not kept.
        package var session: [UInt8]
        package var operation: DeviceOperation
        /// Its children as one value.
        package var children: [UInt8]

        package init(
            instanceID: InstanceID, deviceID: DeviceID, userID: UserID, session: [UInt8], operation: DeviceOperation,
            children: [UInt8]
        ) {
            self.instanceID = instanceID
            self.deviceID = deviceID
            self.userID = userID
            self.session = session
            self.operation = operation
            self.children = children
        }

        /// Where it stands in line, as the text of an array: a hash for each entity, each once. Two entities of one
        /// hash only wait for one another.
        var lines: String {
            let hashes = operation.entities.map {
                OplogStore.stableHash("\(instanceID.text)\u{0}\($0.component)\u{0}\($0.key)")
            }
            return "{\(Set(hashes).map(String.init).joined(separator: ","))}"
        }
    }

    /// Takes operations in their order, in one transaction.
    ///
    /// - Parameter group: random; names the results that are told once more, of operations that were over.
    /// - Returns: how many were new, and how many were known.
    package static func take(_ all: [Taking], group: String) -> Query<(taken: Int, known: Int)> {
        let parameters: [PostgresValue] = [
            .textArray(all.map(\.instanceID.text)), .textArray(all.map(\.deviceID.text)),
            .textArray(all.map(\.operation.id)), .textArray(all.map(\.userID.text)), .bytesArray(all.map(\.session)),
            .textArray(all.map(\.operation.component)), .textArray(all.map(\.operation.key)),
            .textArray(all.map(\.operation.name)), .bytesArray(all.map(\.operation.body)),
            .bytesArray(all.map(\.children)), .int16Array(all.map { Int16(clamping: $0.operation.children.count) }),
            .int32Array(all.map { Int32(clamping: $0.operation.body.count) }),
            .int64Array(all.map(\.operation.submittedAt.milliseconds)), .textArray(all.map(\.lines)), .text(group),
        ]
        let sql = """
            SELECT taken, known FROM take_device_operations($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13,
                $14, $15)
            """
        return Query(PostgresStatement(sql, parameters)) { rows in
            rows.first.map { (Int($0.int64(0)), Int($0.int64(1))) } ?? (0, 0)
        }
    }

    /// One as the store has it.
    package struct Held: Sendable {
        package var number: Int64
        package var instanceID: InstanceID
        package var deviceID: DeviceID
        package var userID: UserID
        /// Sealed; empty: there is none.
        package var session: [UInt8]
        /// Without its children.
        package var operation: DeviceOperation
        package var children: [UInt8]
        package var childCount: Int
        package var bodyBytes: Int
        package var takenAt: WallTime
        /// Since then, when this was read; both by the database's clock.
        package var waited: Duration
        package var state: DeviceOperationState
        /// The attempt under way, from 1 on.
        package var attempts: Int
        /// The state that it comes to once its answer is told; nil while there is none.
        package var outcome: DeviceOperationState?
        package var code: Int
        package var message: String
        package var requestID: String
        package var answeredAt: WallTime?
        /// The tenant's new state of the entity.
        package var imported: [UInt8]?
        /// Results of one group are told together.
        package var tellGroup: String
        /// When it was over; before that, when it is tried next, or since when it waited for the try that is under way;
        /// nil: it was never tried.
        package var at: WallTime?
    }

    private static let columns = """
        number, instance_id, device_id, user_id, session, operation_id, component, entity_key, name, body,
        submitted_at_ms, children, child_count, body_bytes, floor(extract(epoch FROM taken_at) * 1000)::bigint, state,
        attempts, coalesce(outcome, 0::smallint), code, message, request_id,
        coalesce(floor(extract(epoch FROM answered_at) * 1000)::bigint, 0), import, coalesce(tell_group, ''),
        greatest(floor(extract(epoch FROM clock_timestamp() - taken_at) * 1000)::bigint, 0),
        CASE WHEN done_at IS NOT NULL THEN floor(extract(epoch FROM done_at) * 1000)::bigint
            WHEN attempts > 0 THEN floor(extract(epoch FROM next_at) * 1000)::bigint ELSE 0 END
        """

    private static func held(_ row: PostgresRow) -> Held {
        func time(_ column: Int) -> WallTime? {
            row.int64(column) == 0 ? nil : WallTime(milliseconds: row.int64(column))
        }
        return Held(
            number: row.int64(0), instanceID: InstanceID(row.text(1)), deviceID: DeviceID(row.text(2)),
            userID: UserID(row.text(3)), session: row.bytes(4),
            operation: DeviceOperation(
                id: row.text(5), component: row.text(6), key: row.text(7), name: row.text(8), body: row.bytes(9),
                submittedAt: WallTime(milliseconds: row.int64(10))),
            children: row.bytes(11), childCount: Int(row.int16(12)), bodyBytes: Int(row.int32(13)),
            takenAt: WallTime(milliseconds: row.int64(14)), waited: .milliseconds(row.int64(24)),
            state: DeviceOperationState(rawValue: row.int16(15)) ?? .waiting, attempts: Int(row.int32(16)),
            outcome: DeviceOperationState(rawValue: row.int16(17)), code: Int(row.int32(18)), message: row.text(19),
            requestID: row.text(20), answeredAt: time(21), imported: row.isNull(22) ? nil : row.bytes(22),
            tellGroup: row.text(23), at: time(25))
    }

    /// Operations of an instance that somebody wants to do.
    package struct Wanted: Sendable {
        package var instanceID: InstanceID
        package var most: Int
        /// Those whose turn came before that are not looked for; nil: all.
        package var from: WallTime?

        package init(instanceID: InstanceID, most: Int, from: WallTime? = nil) {
            self.instanceID = instanceID
            self.most = most
            self.from = from
        }
    }

    /// Claims operations whose turn it is, each with the time since when it is.
    ///
    /// - Parameters:
    ///   - wanted: each instance once.
    ///   - claimer: names this process.
    ///   - lease: how long it has to answer; then others may claim them.
    package static func claim(
        _ wanted: [Wanted], claimer: String, lease: Duration
    ) -> Query<[Held]> {
        let parameters: [PostgresValue] = [
            .textArray(wanted.map(\.instanceID.text)), .int32Array(wanted.map { Int32(clamping: $0.most) }),
            .int64Array(wanted.map { $0.from?.milliseconds ?? 0 }), .text(claimer), .int64(lease.wholeMilliseconds),
        ]
        let sql = "SELECT \(columns) FROM claim_device_operations($1, $2, $3, $4, $5 * interval '1 ms') ORDER BY number"
        return Query(PostgresStatement(sql, parameters)) { rows in rows.map(held) }
    }

    /// What a call came to.
    package struct Answer: Sendable {
        package var instanceID: InstanceID
        package var number: Int64
        package var attempt: Int
        /// Nil: it is tried again after the pause.
        package var outcome: DeviceOperationState?
        package var code: Int
        package var message: String
        package var requestID: String
        package var imported: [UInt8]?
        package var pause: Duration
        /// With whose results it is told; empty: it is not.
        package var tellGroup: String

        package init(
            instanceID: InstanceID, number: Int64, attempt: Int, outcome: DeviceOperationState?, code: Int,
            message: String, requestID: String, imported: [UInt8]?, pause: Duration, tellGroup: String
        ) {
            self.instanceID = instanceID
            self.number = number
            self.attempt = attempt
            self.outcome = outcome
            self.code = code
            self.message = message
            self.requestID = requestID
            self.imported = imported
            self.pause = pause
            self.tellGroup = tellGroup
        }
    }

    /// Notes answers; those of claims that were lost change nothing.
    ///
    /// - Parameters:
    ///   - time: of the answers, by this process's clock.
    ///   - lease: how long this process has to tell them.
    /// - Returns: the numbers of those that are to be told, each with the time that its devices are told.
    package static func answer(
        _ all: [Answer], at time: WallTime, claimer: String, lease: Duration
    ) -> Query<[Int64: WallTime]> {
        let parameters: [PostgresValue] = [
            .textArray(all.map(\.instanceID.text)), .int64Array(all.map(\.number)),
            .int32Array(all.map { Int32(clamping: $0.attempt) }), .text(claimer),
            .int16Array(all.map { $0.outcome?.rawValue ?? 0 }), .int32Array(all.map { Int32(clamping: $0.code) }),
            .textArray(all.map(\.message)), .textArray(all.map(\.requestID)),
            .bytesArray(all.map { $0.imported ?? [] }), .int64Array(all.map(\.pause.wholeMilliseconds)),
            .textArray(all.map(\.tellGroup)), .int64(time.milliseconds), .int64(lease.wholeMilliseconds),
        ]
        let sql = """
            SELECT answered, told_at_ms FROM answer_device_operations($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
                $13 * interval '1 ms')
            """
        return Query(PostgresStatement(sql, parameters)) { rows in
            Dictionary(uniqueKeysWithValues: rows.map { ($0.int64(0), WallTime(milliseconds: $0.int64(1))) })
        }
    }

    /// Claims what was answered and not told in time, in whole groups.
    package static func claimUntold(claimer: String, lease: Duration, most: Int) -> Query<[Held]> {
        let sql = "SELECT \(columns) FROM claim_untold_operations($1, $2 * interval '1 ms', $3) ORDER BY number"
        let parameters: [PostgresValue] = [
            .text(claimer), .int64(lease.wholeMilliseconds), .int32(Int32(clamping: most)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in rows.map(held) }
    }

    /// One that has been told.
    package struct Told: Sendable, Hashable {
        package var instanceID: InstanceID
        package var number: Int64
        package var tellGroup: String

        package init(instanceID: InstanceID, number: Int64, tellGroup: String) {
            self.instanceID = instanceID
            self.number = number
            self.tellGroup = tellGroup
        }
    }

    /// Ends operations that have been told; whatever stands behind them at their entities moves up.
    ///
    /// - Returns: the earliest turn of what has moved up to the first place, of each instance in which something has.
    package static func finish(_ told: [Told]) -> Query<[InstanceID: WallTime]> {
        let parameters: [PostgresValue] = [
            .textArray(told.map(\.instanceID.text)), .int64Array(told.map(\.number)),
            .textArray(told.map(\.tellGroup)),
        ]
        let sql = "SELECT moved_instance, turn_ms FROM finish_device_operations($1, $2, $3)"
        return Query(PostgresStatement(sql, parameters)) { rows in
            Dictionary(
                uniqueKeysWithValues: rows.map { (InstanceID($0.text(0)), WallTime(milliseconds: $0.int64(1))) })
        }
    }

    // MARK: What people ask

    /// Which operations somebody wants to see.
    package struct Filter: Sendable {
        package var instanceID: InstanceID
        /// Nil: of all states; the others likewise.
        package var state: DeviceOperationState?
        package var deviceID: DeviceID?
        package var userID: UserID?
        package var operationID: String?

        package init(
            instanceID: InstanceID, state: DeviceOperationState? = nil, deviceID: DeviceID? = nil,
            userID: UserID? = nil, operationID: String? = nil
        ) {
            self.instanceID = instanceID
            self.state = state
            self.deviceID = deviceID
            self.userID = userID
            self.operationID = operationID
        }
    }

    /// A page, newest first.
    ///
    /// - Parameter before: only lower numbers; 0: from the newest on.
    package static func list(_ filter: Filter, before: Int64 = 0, most: Int) -> Query<[Held]> {
        let parameters: [PostgresValue] = [
            .text(filter.instanceID.text), .int16(filter.state?.rawValue ?? 0), .text(filter.deviceID?.text ?? ""),
            .text(filter.userID?.text ?? ""), .text(filter.operationID ?? ""), .int64(before),
            .int32(Int32(clamping: most)),
        ]
        let sql = "SELECT \(columns) FROM list_device_operations($1, $2, $3, $4, $5, $6, $7) ORDER BY number DESC"
        return Query(PostgresStatement(sql, parameters)) { rows in rows.map(held) }
    }

    /// How many of an instance wait, are being told, and are dead.
    package static func counts(of instanceID: InstanceID) -> Query<[DeviceOperationState: Int64]> {
        let sql = "SELECT counted_state, operations FROM count_device_operations($1)"
        return Query(PostgresStatement(sql, [.text(instanceID.text)])) { rows in
            Dictionary(
                rows.compactMap { row in DeviceOperationState(rawValue: row.int16(0)).map { ($0, row.int64(1)) } }
            ) { first, _ in first }
        }
    }

    /// What came of operations on one day.
    package struct Day: Sendable, Hashable {
        /// As `2026-11-23`, of UTC.
        package var day: String
        package var component: String
        package var accepted: Int64
        package var refused: Int64
        /// Given up; one that is done after all counts in both.
        package var dead: Int64
        /// Calls of the tenant.
        package var attempts: Int64
        /// From being taken to the answer, of all together.
        package var waited: Duration
    }

    /// The figures of the last days, the newest first; at most 1,000 rows.
    package static func days(of instanceID: InstanceID, last days: Int) -> Query<[Day]> {
        let sql = """
            SELECT day::text, component, accepted, refused, dead, attempts, waited_ms
            FROM list_operation_days($1, $2) ORDER BY day DESC, component
            """
        let parameters: [PostgresValue] = [.text(instanceID.text), .int32(Int32(clamping: days))]
        return Query(PostgresStatement(sql, parameters)) { rows in
            rows.map { row in
                Day(
                    day: row.text(0), component: row.text(1), accepted: row.int64(2), refused: row.int64(3),
                    dead: row.int64(4), attempts: row.int64(5), waited: .milliseconds(row.int64(6)))
            }
        }
    }

    /// Has a dead operation done after all, and records who wanted it; false: there is no such one.
    package static func retry(
        _ operationID: String, of deviceID: DeviceID, _ instanceID: InstanceID, by actor: OperationActor
    ) -> Query<Bool> {
        let parameters: [PostgresValue] = [
            actor.value, .text(instanceID.text), .text(deviceID.text), .text(operationID),
        ]
        return Query(PostgresStatement("SELECT retry_device_operation($1, $2, $3, $4)", parameters)) { rows in
            rows.first?.bool(0) ?? false
        }
    }

    /// Forgets operations whose time is over, at most so many; gives how many there were.
    package static func forget(most: Int) -> Query<Int> {
        Query(PostgresStatement("SELECT forget_device_operations($1)", [.int32(Int32(clamping: most))])) { rows in
            Int(rows.first?.int64(0) ?? 0)
        }
    }
}
