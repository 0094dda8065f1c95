import Concurrency
import DeviceProtocol
import Foundation
import GRDB
import SwiftProtobuf
import SyncModel

/// The operations and results of the users on this device, in the file of the local store. Callable from any thread:
/// each step is one transaction, flushed to the disk.
final class OperationOutbox: Sendable {
    /// The time for which the id of a finished operation is known, and the most of them.
    static let keptFor = Duration.seconds(31 * 86_400)
    static let keptMax = 10_000

    private let database: DatabaseQueue
    private let lock: StoreLock
    /// The largest size of the store in bytes.
    private let limit: Int
    let clock: @Sendable () -> WallTime
    /// Changes only while the database is held.
    private let cipher = LockedValue<PayloadCipher?>(nil)

    /// - Parameter lock: the lock of the database's file.
    init(database: DatabaseQueue, lock: StoreLock, limit: Int, clock: @escaping @Sendable () -> WallTime) {
        self.database = database
        self.lock = lock
        self.limit = limit
        self.clock = clock
    }

    /// Sets the cipher. Call it only while the database is held.
    func use(_ cipher: PayloadCipher?) { self.cipher.withLock { $0 = cipher } }

    // MARK: App

    /// Stores operations, all or none. Operations with a known id are ignored.
    ///
    /// - Parameter isCall: whether a caller waits for their results, which then are in no sequence of results.
    func add(_ operations: [DeviceOperation], ofUser userID: String, isCall: Bool = false) throws(SyncError) {
        try change("storing operations") { db in
            let bytes = operations.reduce(0) { $0 + $1.storedBytes }
            guard try StoreSpace.hasSpace(for: bytes, within: limit, in: db) else {
                throw SyncError(.storeFull, "the local store is full: confirm oplogs, or increase storeLimit")
            }
            for operation in operations {
                try db.cachedStatement(
                    sql: """
                        INSERT INTO operation (
                            id, user_id, component, entity_key, name, body, children, submitted_at_ms, state, is_call)
                        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO NOTHING
                        """
                ).execute(arguments: [
                    operation.id, userID, operation.component, operation.key, operation.name,
                    try seal(Data(operation.body), of: operation.id, "body"),
                    try seal(Self.bytes(of: operation.children), of: operation.id, "children"),
                    operation.submittedAt.milliseconds, OperationState.waiting.rawValue, isCall,
                ])
                guard try !isCall || hasCall(operation.id, ofUser: userID, in: db) else {
                    throw SyncError(
                        .invalidArgument, "\(operation.id) is the id of another operation: make a new one for the call")
                }
            }
        }
    }

    private func hasCall(_ id: String, ofUser userID: String, in db: Database) throws -> Bool {
        try Bool.fetchOne(
            db, sql: "SELECT is_call AND user_id = ? FROM operation WHERE id = ?", arguments: [userID, id]) == true
    }

    /// Ends the wait of a call: withdraws the call if it was not sent.
    ///
    /// - Returns: the result if it is known; otherwise whether the call was withdrawn.
    func endCall(_ id: String) throws(SyncError) -> (result: SyncOperationResult?, isWithdrawn: Bool) {
        var end: (result: SyncOperationResult?, isWithdrawn: Bool) = (nil, false)
        try change("ending a call") { db in
            end.result = try self.result(of: id, in: db)
            guard end.result == nil else { return }
            let state = try Int.fetchOne(db, sql: "SELECT state FROM operation WHERE id = ?", arguments: [id])
            end.isWithdrawn = state == nil || state == OperationState.waiting.rawValue
            if end.isWithdrawn { try db.execute(sql: "DELETE FROM operation WHERE id = ?", arguments: [id]) }
        }
        return end
    }

    /// Deletes the operations that were not sent, and returns their ids.
    func cancel(_ ids: [String], ofUser userID: String) throws(SyncError) -> [String] {
        var cancelled: [String] = []
        try change("cancelling operations") { db in
            for id in ids {
                try db.cachedStatement(sql: "DELETE FROM operation WHERE id = ? AND user_id = ? AND state = ?")
                    .execute(arguments: [id, userID, OperationState.waiting.rawValue])
                if db.changesCount > 0 { cancelled.append(id) }
            }
        }
        return cancelled
    }

    /// Returns the operations without a result, in their order.
    func pending(ofUser userID: String) throws(SyncError) -> [DeviceOperation] {
        try access("reading operations") { db in
            try Row.fetchAll(
                db,
                sql: "SELECT \(Self.columns) FROM operation WHERE user_id = ? AND state < ? ORDER BY number",
                arguments: [userID, OperationState.over.rawValue]
            ).map { try self.operation($0) }
        }
    }

    /// Whether the service has not replied about a user's parameters of these Sync IDs.
    func hasPendingParameters(ofUser userID: String, of bizTypes: Set<String>) throws(SyncError) -> Bool {
        try access("reading pending parameters") { db in
            try String.fetchSet(
                db, sql: "SELECT biz_type FROM parameter WHERE user_id = ? AND is_server AND is_pending",
                arguments: [userID]
            ).contains { bizTypes.contains($0) }
        }
    }

    /// Records durably that the app has processed a result. A result that was replaced meanwhile stays.
    func confirm(_ result: SyncOperationResult) throws(SyncError) {
        try change("confirming a result") { db in
            try db.cachedStatement(
                sql: """
                    UPDATE operation_result SET is_confirmed = 1, imported = NULL WHERE operation_id = ? AND at_ms = ?
                    """
            ).execute(arguments: [result.operationID, result.at.milliseconds])
        }
    }

    /// Returns a user's first result that the app has not confirmed.
    ///
    /// - Parameters:
    ///   - components: the components; nil for all except the one of diagnosis logs, which has a reader of its own.
    ///   - shown: by component, the number after which to read.
    func result(
        ofUser userID: String, of components: Set<String>?, after shown: [String: Int64]
    ) throws(SyncError) -> (Int64, SyncOperationResult)? {
        var sql = "SELECT \(Self.resultColumns), number FROM operation_result WHERE user_id = ? AND NOT is_confirmed"
        var arguments: StatementArguments = [userID]
        if let components {
            sql += " AND component IN (\(components.map { _ in "?" }.joined(separator: ", ")))"
            arguments += StatementArguments(components)
        } else {
            sql += " AND component <> ?"
            arguments += [ReservedSyncID.diagnosis.text]
        }
        let marks = shown.filter { components?.contains($0.key) ?? true }
        if !marks.isEmpty {
            let cases = String(repeating: " WHEN ? THEN ?", count: marks.count)
            sql += " AND number > CASE component\(cases) ELSE 0 END"
            for (component, number) in marks { arguments += [component, number] }
        }
        return try access("reading a result") { db in
            try Row.fetchOne(db, sql: sql + " ORDER BY number LIMIT 1", arguments: arguments).map { row in
                (row["number"], try self.result(row))
            }
        }
    }

    /// Returns the result of one operation; nil before it is known.
    func result(of id: String) throws(SyncError) -> SyncOperationResult? {
        try access("reading a result") { db in try result(of: id, in: db) }
    }

    private func result(of id: String, in db: Database) throws -> SyncOperationResult? {
        try Row.fetchOne(
            db, sql: "SELECT \(Self.resultColumns) FROM operation_result WHERE operation_id = ?", arguments: [id]
        ).map { try result($0) }
    }

    // MARK: Connection

    /// Returns the next frame of a user's operations that the service has not accepted, in their order, and marks them
    /// as sent.
    ///
    /// - Parameter maxBytes: the largest size of the operations on the wire. The first operation is returned in any
    ///   case.
    func nextFrame(ofUser userID: String, maxBytes: Int) throws(SyncError) -> [DeviceOperation] {
        var frame: [DeviceOperation] = []
        try change("reading the next operations") { db in
            let rows = try Row.fetchCursor(
                db,
                sql: """
                    SELECT \(Self.columns) FROM operation WHERE user_id = ? AND state < ? ORDER BY number LIMIT ?
                    """, arguments: [userID, OperationState.taken.rawValue, Limits.frameOperations])
            var bytes = 0
            while let row = try rows.next() {
                let operation = try self.operation(row)
                bytes += ((try? operation.wire.serializedBytes() as [UInt8])?.count ?? 0) + 8
                guard frame.isEmpty || bytes <= maxBytes else { break }
                frame.append(operation)
            }
            let statement = try db.cachedStatement(
                sql: "UPDATE operation SET state = ?, sends = sends + 1 WHERE id = ?")
            for operation in frame { try statement.execute(arguments: [OperationState.sent.rawValue, operation.id]) }
        }
        return frame
    }

    /// Applies the service's reply to a frame.
    ///
    /// - Parameters:
    ///   - taken: the service has accepted these and will execute them.
    ///   - over: the service will never accept these; each gets its result now.
    ///   - free: the service did not accept these now. They can be cancelled, unless an earlier send had no reply.
    func answered(taken: [String], over: [OperationRefusal], free: [String]) throws(SyncError) {
        let now = clock()
        try change("applying a reply about operations") { db in
            let taking = try db.cachedStatement(sql: "UPDATE operation SET state = ? WHERE id = ? AND state = ?")
            for id in taken {
                try taking.execute(arguments: [OperationState.taken.rawValue, id, OperationState.sent.rawValue])
            }
            // The service may have accepted one of several sends without a reply.
            let freeing = try db.cachedStatement(
                sql: "UPDATE operation SET state = ?, sends = 0 WHERE id = ? AND state = ? AND sends = 1")
            for id in free {
                try freeing.execute(arguments: [OperationState.waiting.rawValue, id, OperationState.sent.rawValue])
            }
            for refusal in over {
                let row = try Row.fetchOne(
                    db, sql: "SELECT user_id, component, entity_key, name FROM operation WHERE id = ?",
                    arguments: [refusal.operationID])
                guard let row else { continue }
                let result = SyncOperationResult(
                    operationID: refusal.operationID, component: row[1], key: row[2], name: row[3], isAccepted: false,
                    code: Int(refusal.code), level: "ERROR", message: refusal.message, requestID: "",
                    at: Date(milliseconds: now.milliseconds), imported: nil)
                try store(ResultPayload.Entry(result: result, userID: row[0]), in: db)
            }
        }
    }

    /// Stores a result and ends its operation. Ignores a known result, and a result without a known user.
    ///
    /// - Parameter db: in a transaction.
    /// - Returns: whether the app has a new result to read.
    @discardableResult
    func store(_ entry: ResultPayload.Entry, in db: Database) throws -> Bool {
        let result = entry.result
        let owner = try String.fetchOne(
            db, sql: "SELECT user_id FROM operation WHERE id = ?", arguments: [result.operationID])
        guard let userID = owner ?? entry.userID, !userID.isEmpty else { return false }
        let known = try Int64.fetchOne(
            db, sql: "SELECT at_ms FROM operation_result WHERE operation_id = ?", arguments: [result.operationID])
        if let known, known >= result.at.milliseconds { return false }
        try db.execute(
            sql: "UPDATE operation SET state = ?, body = x'', children = x'', done_at_ms = ? WHERE id = ?",
            arguments: [OperationState.over.rawValue, clock().milliseconds, result.operationID])
        // A new row gets a higher number, so that the app reads it after the results that it has read.
        try db.execute(sql: "DELETE FROM operation_result WHERE operation_id = ?", arguments: [result.operationID])
        try db.execute(
            sql: """
                INSERT INTO operation_result (
                    operation_id, user_id, component, entity_key, name, is_accepted, code, level, message, request_id,
                    at_ms, imported, is_confirmed)
                VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
                    COALESCE((SELECT is_call FROM operation WHERE id = ?1), 0))
                """,
            arguments: [
                result.operationID, userID, result.component, result.key, result.name, result.isAccepted, result.code,
                result.level, result.message, result.requestID, result.at.milliseconds,
                try result.imported.map { try seal(Data($0), of: result.operationID, "import") },
            ])
        return true
    }

    /// The time for which an answer is kept that no caller has read.
    private static let unreadAnswerKeptFor = Duration.seconds(86_400)

    /// Deletes old finished operations and their confirmed results, unsent calls of an earlier process, and answers to
    /// calls that nobody has read.
    func forgetOld() throws(SyncError) {
        let before = clock().milliseconds - Self.keptFor.wholeMilliseconds
        try change("deleting old operations") { db in
            try db.execute(
                sql: "DELETE FROM operation WHERE is_call AND state = ?", arguments: [OperationState.waiting.rawValue])
            try db.execute(
                sql: "UPDATE operation_result SET imported = NULL WHERE is_confirmed AND at_ms < ?",
                arguments: [clock().milliseconds - Self.unreadAnswerKeptFor.wholeMilliseconds])
            try db.execute(
                sql: """
                    DELETE FROM operation_result WHERE is_confirmed AND operation_id IN (
                        SELECT id FROM operation WHERE state = ?1 AND (done_at_ms < ?2 OR number <= (
                            SELECT number FROM operation WHERE state = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?3)))
                    """, arguments: [OperationState.over.rawValue, before, Self.keptMax])
            try db.execute(
                sql: """
                    DELETE FROM operation WHERE state = ?1
                    AND NOT EXISTS (SELECT 1 FROM operation_result r WHERE r.operation_id = operation.id)
                    """, arguments: [OperationState.over.rawValue])
        }
    }

    // MARK: Rows

    private static let columns = "id, component, entity_key, name, body, children, submitted_at_ms"
    private static let resultColumns =
        "operation_id, component, entity_key, name, is_accepted, code, level, message, request_id, at_ms, imported"

    private func result(_ row: Row) throws -> SyncOperationResult {
        let (id, sealed): (String, Data?) = (row[0], row[10])
        let imported = try sealed.map { try open($0, of: id, "import") }
        return SyncOperationResult(
            operationID: id, component: row[1], key: row[2], name: row[3], isAccepted: row[4], code: row[5],
            level: row[6], message: row[7], requestID: row[8], at: Date(milliseconds: row[9]),
            imported: imported.map { [UInt8]($0) })
    }

    private func operation(_ row: Row) throws -> DeviceOperation {
        let id: String = row[0]
        let body = try open(row[4], of: id, "body")
        let children = try open(row[5], of: id, "children")
        return DeviceOperation(
            id: id, component: row[1], key: row[2], name: row[3], body: [UInt8](body),
            children: try Self.children(of: children), submittedAt: WallTime(milliseconds: row[6]))
    }

    private static func bytes(of children: [DeviceOperation]) throws -> Data {
        if children.isEmpty { return Data() }
        return try Mss_Device_V1_SubmitOperations.with { $0.operations = children.map(\.wire) }.serializedData()
    }

    private static func children(of data: Data) throws -> [DeviceOperation] {
        if data.isEmpty { return [] }
        return try Mss_Device_V1_SubmitOperations(serializedBytes: data).operations.map(DeviceOperation.init(wire:))
    }

    private func seal(_ data: Data, of id: String, _ part: String) throws -> Data {
        try cipher.withLock { $0 }?.seal(data, ofOperation: id, part) ?? data
    }

    private func open(_ data: Data, of id: String, _ part: String) throws -> Data {
        try cipher.withLock { $0 }?.open(data, ofOperation: id, part) ?? data
    }

    /// Encrypts everything with another key.
    static func rewrite(_ db: Database, from old: PayloadCipher?, to new: PayloadCipher?) throws {
        func anew(_ data: Data, of id: String, _ part: String) throws -> Data {
            let plain = try old?.open(data, ofOperation: id, part) ?? data
            return try new?.seal(plain, ofOperation: id, part) ?? plain
        }
        for row in try Row.fetchAll(db, sql: "SELECT id, body, children FROM operation WHERE state < 3") {
            let id: String = row[0]
            try db.execute(
                sql: "UPDATE operation SET body = ?, children = ? WHERE id = ?",
                arguments: [try anew(row[1], of: id, "body"), try anew(row[2], of: id, "children"), id])
        }
        let results = "SELECT operation_id, imported FROM operation_result WHERE imported IS NOT NULL"
        for row in try Row.fetchAll(db, sql: results) {
            let id: String = row[0]
            try db.execute(
                sql: "UPDATE operation_result SET imported = ? WHERE operation_id = ?",
                arguments: [try anew(row[1], of: id, "import"), id])
        }
    }

    // MARK: Access

    private func access<Value>(_ step: String, _ body: (Database) throws -> Value) throws(SyncError) -> Value {
        let isHeld = try lock.beginStep()
        defer { lock.endStep() }
        do {
            return try database.inDatabase { db in
                // Another client may have used the store since the run ended.
                if !isHeld { try LocalStoreFile.check(cipher.withLock { $0 }, in: db) }
                return try body(db)
            }
        } catch {
            throw SyncError(step: step, error)
        }
    }

    private func change(_ step: String, _ body: (Database) throws -> Void) throws(SyncError) {
        try access(step) { db in
            try db.inTransaction(.immediate) {
                try body(db)
                return .commit
            }
        }
    }
}

extension DeviceOperation {
    /// The approximate size in the store.
    fileprivate var storedBytes: Int {
        children.reduce(body.count + 400) { $0 + $1.body.count + 400 }
    }
}
