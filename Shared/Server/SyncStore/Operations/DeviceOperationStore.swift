import PostgreSQL
package import SyncModel

/// Device operations on their way to tenants (m0010_operations).
///
/// **Ordering law.** The operations of an instance are numbered and put into the lines of their entities under the
/// instance's lock, which is held until the commit. An operation is called when it is the first in each of its lines,
/// and leaves them only after its result was announced. So calls for an entity, and the results on devices, are in the
/// order in which operations were stored, with any number of relays.
package enum DeviceOperationStore {
    /// An operation to store.
    package struct SubmittedOperation: Sendable {
        package var instanceID: InstanceID
        package var deviceID: DeviceID
        package var userID: UserID
        /// The sealed session id; empty: it is not kept.
        package var session: [UInt8]
        package var operation: DeviceOperation
        /// The encoded child operations.
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

        /// Its entities' hashes as the text of an array, each once. Two entities with the same hash only wait for each
        /// other.
        var lines: String {
            let hashes = operation.entities.map {
                OplogStore.stableHash("\(instanceID.text)\u{0}\($0.component)\u{0}\($0.key)")
            }
            return "{\(Set(hashes).map(String.init).joined(separator: ","))}"
        }
    }

    /// Stores operations in their order, in one transaction.
    ///
    /// - Parameter group: a random name for the results of finished operations, which are announced again.
    /// - Returns: how many were new, and how many were known.
    package static func store(_ all: [SubmittedOperation], group: String) -> Query<(stored: Int, known: Int)> {
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
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.first { columns throws(PostgresError) in
                (stored: try columns.next(Int.self), known: try columns.next(Int.self))
            } ?? (0, 0)
        }
    }

    /// An operation as the store has it.
    package struct StoredOperation: Sendable {
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
        /// The time since then at the read; both by the database's clock.
        package var waited: Duration
        package var state: DeviceOperationState
        /// The attempt in flight, from 1 on.
        package var attempts: Int
        /// The state after its result is announced; nil: there is no result yet.
        package var outcome: DeviceOperationState?
        package var code: Int
        package var message: String
        package var requestID: String
        package var answeredAt: WallTime?
        /// The tenant's new state of the entity.
        package var imported: [UInt8]?
        /// Results of one group are announced together.
        package var resultGroup: String
        /// Finished: when it finished. Before: when the next attempt is due, or since when it waited for the attempt in
        /// flight; nil: there was no attempt yet.
        package var at: WallTime?
    }

    private static let columns = """
        number, instance_id, device_id, user_id, session, operation_id, component, entity_key, name, body,
        submitted_at_ms, children, child_count, body_bytes, floor(extract(epoch FROM taken_at) * 1000)::bigint,
        greatest(floor(extract(epoch FROM clock_timestamp() - taken_at) * 1000)::bigint, 0), state, attempts, outcome,
        code, message, request_id, floor(extract(epoch FROM answered_at) * 1000)::bigint, import,
        coalesce(tell_group, ''),
        CASE WHEN done_at IS NOT NULL THEN floor(extract(epoch FROM done_at) * 1000)::bigint
            WHEN attempts > 0 THEN floor(extract(epoch FROM next_at) * 1000)::bigint END
        """

    private static func operation(_ columns: inout PostgresColumns) throws(PostgresError) -> StoredOperation {
        try StoredOperation(
            number: columns.next(), instanceID: columns.next(), deviceID: columns.next(), userID: columns.next(),
            session: columns.next(),
            operation: DeviceOperation(
                id: columns.next(), component: columns.next(), key: columns.next(), name: columns.next(),
                body: columns.next(), submittedAt: columns.next()),
            children: columns.next(), childCount: columns.next(), bodyBytes: columns.next(), takenAt: columns.next(),
            waited: .milliseconds(columns.next(Int64.self)),
            state: DeviceOperationState(rawValue: columns.next()) ?? .waiting, attempts: columns.next(),
            outcome: columns.next(Int16?.self).flatMap(DeviceOperationState.init), code: columns.next(),
            message: columns.next(), requestID: columns.next(), answeredAt: columns.next(), imported: columns.next(),
            resultGroup: columns.next(), at: columns.next())
    }

    /// A claim of one instance's operations.
    package struct ClaimRequest: Sendable {
        package var instanceID: InstanceID
        package var most: Int
        /// Operations whose turn came before this are not read; nil: all are.
        package var from: WallTime?

        package init(instanceID: InstanceID, most: Int, from: WallTime? = nil) {
            self.instanceID = instanceID
            self.most = most
            self.from = from
        }
    }

    /// Claims operations that have their turn, each with the time since when it has it.
    ///
    /// - Parameters:
    ///   - requests: each instance once.
    ///   - claimer: the name of this process.
    ///   - lease: the time in which it must answer; then others may claim them.
    package static func claim(
        _ requests: [ClaimRequest], claimer: String, lease: Duration
    ) -> Query<[StoredOperation]> {
        let parameters: [PostgresValue] = [
            .textArray(requests.map(\.instanceID.text)), .int32Array(requests.map { Int32(clamping: $0.most) }),
            .int64Array(requests.map { $0.from?.milliseconds ?? 0 }), .text(claimer), .int64(lease.wholeMilliseconds),
        ]
        let sql = "SELECT \(columns) FROM claim_device_operations($1, $2, $3, $4, $5 * interval '1 ms') ORDER BY number"
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in try rows.decode(operation) }
    }

    /// The answer of a call.
    package struct Answer: Sendable {
        package var instanceID: InstanceID
        package var number: Int64
        package var attempt: Int
        /// A nil value means: the call is repeated after the pause.
        package var outcome: DeviceOperationState?
        package var code: Int
        package var message: String
        package var requestID: String
        package var imported: [UInt8]?
        package var pause: Duration
        /// The group in which the result is announced; empty: it is not announced.
        package var resultGroup: String

        package init(
            instanceID: InstanceID, number: Int64, attempt: Int, outcome: DeviceOperationState?, code: Int,
            message: String, requestID: String, imported: [UInt8]?, pause: Duration, resultGroup: String
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
            self.resultGroup = resultGroup
        }
    }

    /// Records answers; an answer to a lost claim changes nothing.
    ///
    /// - Parameters:
    ///   - time: of the answers, by this process's clock.
    ///   - lease: the time in which this process must announce them.
    /// - Returns: the numbers of the results to announce, each with the time for the devices.
    package static func answer(
        _ all: [Answer], at time: WallTime, claimer: String, lease: Duration
    ) -> Query<[Int64: WallTime]> {
        let parameters: [PostgresValue] = [
            .textArray(all.map(\.instanceID.text)), .int64Array(all.map(\.number)),
            .int32Array(all.map { Int32(clamping: $0.attempt) }), .text(claimer),
            .int16Array(all.map { $0.outcome?.rawValue ?? 0 }), .int32Array(all.map { Int32(clamping: $0.code) }),
            .textArray(all.map(\.message)), .textArray(all.map(\.requestID)),
            .bytesArray(all.map { $0.imported ?? [] }), .int64Array(all.map(\.pause.wholeMilliseconds)),
            .textArray(all.map(\.resultGroup)), .int64(time.milliseconds), .int64(lease.wholeMilliseconds),
        ]
        let sql = """
            SELECT answered, told_at_ms FROM answer_device_operations($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
                $13 * interval '1 ms')
            """
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            var announced: [Int64: WallTime] = [:]
            try rows.forEachRow { columns throws(PostgresError) in
                let number = try columns.next(Int64.self)
                announced[number] = try columns.next(WallTime.self)
            }
            return announced
        }
    }

    /// Claims answered operations whose results were not announced in time, in whole groups.
    package static func claimUnannounced(claimer: String, lease: Duration, most: Int) -> Query<[StoredOperation]> {
        let sql = "SELECT \(columns) FROM claim_untold_operations($1, $2 * interval '1 ms', $3) ORDER BY number"
        let parameters: [PostgresValue] = [
            .text(claimer), .int64(lease.wholeMilliseconds), .int32(Int32(clamping: most)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in try rows.decode(operation) }
    }

    /// An operation whose result was announced.
    package struct AnnouncedOperation: Sendable, Hashable {
        package var instanceID: InstanceID
        package var number: Int64
        package var resultGroup: String

        package init(instanceID: InstanceID, number: Int64, resultGroup: String) {
            self.instanceID = instanceID
            self.number = number
            self.resultGroup = resultGroup
        }
    }

    /// Finishes operations whose results were announced; the operations behind them at their entities advance.
    ///
    /// - Returns: for each instance in which an operation reached the first place, the earliest time since which such
    ///   an operation waits.
    package static func finish(_ announced: [AnnouncedOperation]) -> Query<[InstanceID: WallTime]> {
        let parameters: [PostgresValue] = [
            .textArray(announced.map(\.instanceID.text)), .int64Array(announced.map(\.number)),
            .textArray(announced.map(\.resultGroup)),
        ]
        let sql = "SELECT moved_instance, turn_ms FROM finish_device_operations($1, $2, $3)"
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            var turns: [InstanceID: WallTime] = [:]
            try rows.forEachRow { columns throws(PostgresError) in
                let instanceID = try columns.next(InstanceID.self)
                turns[instanceID] = try columns.next(WallTime.self)
            }
            return turns
        }
    }

    // MARK: Queries of operators

    /// A filter of operations.
    package struct Filter: Sendable {
        package var instanceID: InstanceID
        /// A nil value means: all states; the others likewise.
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

    /// A page of operations, newest first.
    ///
    /// - Parameter before: only lower numbers; 0: from the newest on.
    package static func list(_ filter: Filter, before: Int64 = 0, most: Int) -> Query<[StoredOperation]> {
        let parameters: [PostgresValue] = [
            .text(filter.instanceID.text), .int16(filter.state?.rawValue ?? 0), .text(filter.deviceID?.text ?? ""),
            .text(filter.userID?.text ?? ""), .text(filter.operationID ?? ""), .int64(before),
            .int32(Int32(clamping: most)),
        ]
        let sql = "SELECT \(columns) FROM list_device_operations($1, $2, $3, $4, $5, $6, $7) ORDER BY number DESC"
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in try rows.decode(operation) }
    }

    /// The numbers of waiting, answered and dead operations of an instance.
    package static func counts(of instanceID: InstanceID) -> Query<[DeviceOperationState: Int64]> {
        let sql = "SELECT counted_state, operations FROM count_device_operations($1)"
        return Query(PostgresStatement(sql, [.text(instanceID.text)])) { rows throws(PostgresError) in
            var counts: [DeviceOperationState: Int64] = [:]
            try rows.forEachRow { columns throws(PostgresError) in
                let state = DeviceOperationState(rawValue: try columns.next())
                let operations = try columns.next(Int64.self)
                if let state { counts[state] = operations }
            }
            return counts
        }
    }

    /// The figures of one day's operations.
    package struct Day: Sendable, Hashable {
        /// A UTC day, as `2026-11-23`.
        package var day: String
        package var component: String
        package var accepted: Int64
        package var refused: Int64
        /// One that is accepted after a retry counts in both.
        package var dead: Int64
        /// Calls of the tenant.
        package var attempts: Int64
        /// The sum of the times from storing to the answer.
        package var waited: Duration
    }

    /// The figures of the last days, the newest first; at most 1,000 rows.
    package static func days(of instanceID: InstanceID, last days: Int) -> Query<[Day]> {
        let sql = """
            SELECT day::text, component, accepted, refused, dead, attempts, waited_ms
            FROM list_operation_days($1, $2) ORDER BY day DESC, component
            """
        let parameters: [PostgresValue] = [.text(instanceID.text), .int32(Int32(clamping: days))]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.decode { columns throws(PostgresError) in
                try Day(
                    day: columns.next(), component: columns.next(), accepted: columns.next(), refused: columns.next(),
                    dead: columns.next(), attempts: columns.next(), waited: .milliseconds(columns.next(Int64.self)))
            }
        }
    }

    /// Starts a dead operation again, and records the operator's request; false: there is no such operation.
    package static func retry(
        _ operationID: String, of deviceID: DeviceID, _ instanceID: InstanceID, by actor: OperationActor
    ) -> Query<Bool> {
        let parameters: [PostgresValue] = [
            actor.value, .text(instanceID.text), .text(deviceID.text), .text(operationID),
        ]
        return Query(PostgresStatement("SELECT retry_device_operation($1, $2, $3, $4)", parameters)) {
            rows throws(PostgresError) in
            try rows.first(Bool.self) ?? false
        }
    }

    /// Deletes operations whose time has ended, at most `most`; returns how many.
    package static func forget(most: Int) -> Query<Int> {
        Query(PostgresStatement("SELECT forget_device_operations($1)", [.int32(Int32(clamping: most))])) {
            rows throws(PostgresError) in
            try rows.first(Int.self) ?? 0
        }
    }
}
