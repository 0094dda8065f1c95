import PostgreSQL
package import SyncModel

/// Logs that operators request from devices (m0013_diagnosis).
package enum DiagnosisStore {
    /// A task as the store has it.
    package struct Held: Sendable {
        package var taskID: String
        package var instanceID: InstanceID
        package var deviceID: DeviceID
        /// The bound user when the device last sent something; nil: it has sent nothing.
        package var userID: UserID?
        package var description: String
        /// The creator, as audit records name operators.
        package var actor: String
        package var createdAt: WallTime
        package var changedAt: WallTime
        package var request: DiagnosisRequest
        /// From 1 on.
        package var run: Int
        package var state: DiagnosisState
        /// `too-large`, `nothing-there`, `unreadable` or `damaged`; empty: it is not refused.
        package var refusal: String
        /// The log's name; empty: no part has arrived.
        package var file: String
        package var fileBytes: Int
        /// The digest of the whole log, in lower-case hex.
        package var fileSHA256: String
        package var partCount: Int
        package var takenParts: Int
        package var takenBytes: Int

        package init(
            taskID: String, instanceID: InstanceID, deviceID: DeviceID, userID: UserID?, description: String,
            actor: String, createdAt: WallTime, changedAt: WallTime, request: DiagnosisRequest, run: Int,
            state: DiagnosisState, refusal: String, file: String, fileBytes: Int, fileSHA256: String, partCount: Int,
            takenParts: Int, takenBytes: Int
        ) {
            self.taskID = taskID
            self.instanceID = instanceID
            self.deviceID = deviceID
            self.userID = userID
            self.description = description
            self.actor = actor
            self.createdAt = createdAt
            self.changedAt = changedAt
            self.request = request
            self.run = run
            self.state = state
            self.refusal = refusal
            self.file = file
            self.fileBytes = fileBytes
            self.fileSHA256 = fileSHA256
            self.partCount = partCount
            self.takenParts = takenParts
            self.takenBytes = takenBytes
        }
    }

    private static let columns = """
        task_id, instance_id, device_id, user_id, description, operator,
        floor(extract(epoch FROM created_at) * 1000)::bigint, floor(extract(epoch FROM changed_at) * 1000)::bigint,
        from_ms, to_ms, level, network, limit_bytes, run, state, refusal, file, file_bytes, file_sha256, part_count,
        taken_parts, taken_bytes
        """

    private static func held(_ columns: inout PostgresColumns) throws(PostgresError) -> Held {
        try Held(
            taskID: columns.next(), instanceID: columns.next(), deviceID: columns.next(),
            userID: columns.nextNonEmpty().map(UserID.init), description: columns.next(), actor: columns.next(),
            createdAt: columns.next(), changedAt: columns.next(),
            request: DiagnosisRequest(
                from: columns.next(), to: columns.next(), level: columns.next(), network: columns.next(),
                limitBytes: columns.next()),
            run: columns.next(), state: DiagnosisState(rawValue: columns.next()) ?? .asked, refusal: columns.next(),
            file: columns.next(), fileBytes: columns.next(), fileSHA256: columns.next(), partCount: columns.next(),
            takenParts: columns.next(), takenBytes: columns.next())
    }

    // MARK: Requests of operators

    /// Creates a task, and records the operator's request; false: the instance has `Limits.diagnosisTasks` already.
    package static func create(
        _ taskID: String, of instanceID: InstanceID, for deviceID: DeviceID, _ request: DiagnosisRequest,
        description: String, by actor: OperationActor
    ) -> Query<Bool> {
        let parameters: [PostgresValue] = [
            actor.value, .text(taskID), .text(instanceID.text), .text(deviceID.text), .text(description),
            .int64(request.from.milliseconds), .int64(request.to.milliseconds), .text(request.level),
            .text(request.network), .int32(Int32(clamping: request.limitBytes)),
            .int32(Int32(clamping: Limits.diagnosisTasks)),
        ]
        let sql = "SELECT create_diagnosis_task($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.first(Bool.self) ?? false
        }
    }

    /// Restarts a task under the next run and deletes earlier parts. A nil value means: there is no such task.
    package static func restart(
        _ taskID: String, of instanceID: InstanceID, by actor: OperationActor
    ) -> Query<Held?> {
        let sql = "SELECT \(columns) FROM restart_diagnosis_task($1, $2, $3)"
        return Query(PostgresStatement(sql, [actor.value, .text(instanceID.text), .text(taskID)])) {
            rows throws(PostgresError) in
            try rows.first(held)
        }
    }

    /// Deletes a task with its log; false: there is no such task.
    package static func delete(_ taskID: String, of instanceID: InstanceID, by actor: OperationActor) -> Query<Bool> {
        let sql = "SELECT delete_diagnosis_task($1, $2, $3)"
        return Query(PostgresStatement(sql, [actor.value, .text(instanceID.text), .text(taskID)])) {
            rows throws(PostgresError) in
            try rows.first(Bool.self) ?? false
        }
    }

    /// Records that an operator downloads a log; false: there is no complete one.
    package static func recordDownload(
        _ taskID: String, of instanceID: InstanceID, by actor: OperationActor
    ) -> Query<Bool> {
        let sql = "SELECT note_diagnosis_download($1, $2, $3)"
        return Query(PostgresStatement(sql, [actor.value, .text(instanceID.text), .text(taskID)])) {
            rows throws(PostgresError) in
            try rows.first(Bool.self) ?? false
        }
    }

    /// Tasks of an instance, the newest first.
    ///
    /// - Parameter taskID: only this task; nil: all of them.
    package static func list(of instanceID: InstanceID, taskID: String? = nil) -> Query<[Held]> {
        let sql = "SELECT \(columns) FROM list_diagnosis_tasks($1, $2) ORDER BY number DESC"
        return Query(PostgresStatement(sql, [.text(instanceID.text), .text(taskID ?? "")])) {
            rows throws(PostgresError) in
            try rows.decode(held)
        }
    }

    /// A part of a complete log, from 1 on; nil: it does not exist any more.
    package static func part(_ number: Int, of held: Held) -> Query<[UInt8]?> {
        let parameters: [PostgresValue] = [
            .text(held.instanceID.text), .text(held.taskID), .text(held.fileSHA256), .int32(Int32(clamping: number)),
        ]
        return Query(PostgresStatement("SELECT part FROM read_diagnosis_part($1, $2, $3, $4)", parameters)) {
            rows throws(PostgresError) in
            try rows.first([UInt8].self)
        }
    }

    // MARK: Data from devices

    /// A part of a log as the device sends it.
    package struct Part: Hashable, Sendable {
        package var taskID: String
        package var run: Int
        package var file: String
        package var fileBytes: Int
        package var fileSHA256: String
        /// From 1.
        package var number: Int
        package var total: Int
        package var sha256: String
        package var content: [UInt8]

        package init(
            taskID: String, run: Int, file: String, fileBytes: Int, fileSHA256: String, number: Int, total: Int,
            sha256: String, content: [UInt8]
        ) {
            self.taskID = taskID
            self.run = run
            self.file = file
            self.fileBytes = fileBytes
            self.fileSHA256 = fileSHA256
            self.number = number
            self.total = total
            self.sha256 = sha256
            self.content = content
        }
    }

    /// Stores a part; a repeated part is accepted again.
    ///
    /// - Returns: 200, or the code and the reason for which the device must stop.
    package static func store(
        _ part: Part, of instanceID: InstanceID, from deviceID: DeviceID, _ userID: UserID
    ) -> Query<(code: Int, message: String)> {
        let parameters: [PostgresValue] = [
            .text(instanceID.text), .text(deviceID.text), .text(userID.text), .text(part.taskID),
            .int32(Int32(clamping: part.run)), .text(part.file), .int32(Int32(clamping: part.fileBytes)),
            .text(part.fileSHA256), .int32(Int32(clamping: part.number)), .int32(Int32(clamping: part.total)),
            .text(part.sha256), .bytes(part.content),
        ]
        let sql = """
            SELECT code, message FROM keep_diagnosis_part($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
            """
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.first { columns throws(PostgresError) in
                (code: try columns.next(Int.self), message: try columns.next(String.self))
            } ?? (500, "")
        }
    }

    /// Records that a device sends nothing for a task.
    package static func refuse(
        _ taskID: String, run: Int, reason: String, of instanceID: InstanceID, from deviceID: DeviceID,
        _ userID: UserID
    ) -> Query<Void> {
        let parameters: [PostgresValue] = [
            .text(instanceID.text), .text(deviceID.text), .text(userID.text), .text(taskID),
            .int32(Int32(clamping: run)), .text(reason),
        ]
        return Query(PostgresStatement("SELECT refuse_diagnosis_task($1, $2, $3, $4, $5, $6)", parameters)) { _ in }
    }

    /// Deletes tasks whose time has ended, at most `most`; returns how many.
    package static func forget(most: Int) -> Query<Int> {
        let parameters: [PostgresValue] = [
            .int64(Limits.diagnosisAge.wholeMilliseconds), .int32(Int32(clamping: most)),
        ]
        let sql = "SELECT forget_diagnosis_tasks($1 * interval '1 ms', $2)"
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in try rows.first(Int.self) ?? 0 }
    }
}
