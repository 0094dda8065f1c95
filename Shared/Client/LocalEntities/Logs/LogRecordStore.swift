import Foundation
import GRDB
import MobileSync

extension LogRecord {
    /// The record of an import that was refused.
    static func refusedImport(
        of component: String, key: String = "", _ error: any Error, at milliseconds: Int64
    ) -> LogRecord {
        LogRecord(
            messageID: RandomID.make(), component: component, entityKey: key, code: 500, level: .error,
            message: "\(error)", operation: "import", requestID: "",
            timestamp: Date(timeIntervalSince1970: Double(milliseconds) / 1_000), isOwn: false)
    }
}

/// The log records of this device and of the server.
struct LogRecordStore {
    /// The component of the operations that send log records.
    static let component = "LogRecord"

    private let context: TransactionContext
    private let operations: PendingOperationStore

    init(context: TransactionContext) {
        self.context = context
        operations = PendingOperationStore(context: context)
    }

    /// Stores a record. When there are too many, the oldest records of the server are deleted.
    func add(_ record: LogRecord) throws {
        let message = Data(record.message.utf8)
        try context.db.cachedStatement(sql: "INSERT INTO log_record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)")
            .execute(arguments: [
                record.messageID, record.component, record.entityKey, record.code, record.level.rawValue,
                try context.cipher?.seal(message, for: LogRecord.messagePlace(record.messageID)) ?? message,
                record.operation, record.requestID, AttributeValue.milliseconds(of: record.timestamp) ?? 0,
                record.isOwn,
            ])
        try context.db.cachedStatement(
            sql: """
                DELETE FROM log_record WHERE message_id IN (
                    SELECT message_id FROM log_record WHERE submission_id IS NULL ORDER BY is_own, timestamp_ms, rowid
                    LIMIT max(0, (SELECT count(*) FROM log_record) - ?))
                """
        ).execute(arguments: [EntityLimits.logRecords])
    }

    /// The records, the newest first.
    func records(_ filter: LogFilter, limit: Int?) throws -> [LogRecord] {
        let columns =
            "message_id, component, entity_key, code, level, message, operation, request_id, timestamp_ms, is_own"
        let rows = try Row.fetchAll(
            context.db,
            sql: """
                SELECT \(columns) FROM log_record WHERE \(filter.condition)
                ORDER BY timestamp_ms DESC, rowid DESC LIMIT ?
                """, arguments: filter.arguments + [limit ?? -1])
        return try rows.map { row in
            let (id, level, message): (String, String, Data) = (row[0], row[4], row[5])
            let milliseconds: Int64 = row[8]
            let plain = try context.cipher?.open(message, for: LogRecord.messagePlace(id)) ?? message
            return LogRecord(
                messageID: id, component: row[1], entityKey: row[2], code: row[3],
                level: LogLevel(rawValue: level) ?? .error, message: String(decoding: plain, as: UTF8.self),
                operation: row[6], requestID: row[7],
                timestamp: Date(timeIntervalSince1970: Double(milliseconds) / 1_000), isOwn: row[9])
        }
    }

    /// Submits the records that this device has written and that are not in flight, in as few operations as the limits
    /// allow.
    func submit() throws {
        var (part, bytes) = ([LogRecord](), 0)
        for record in try records(.ownUnsent, limit: nil).reversed() {
            // JSON needs up to six bytes for one byte of text.
            let size = 1_000 + record.message.utf8.count * 6
            if bytes + size > EntityLimits.logRecordBytes, !part.isEmpty {
                try submit(part)
                (part, bytes) = ([], 0)
            }
            part.append(record)
            bytes += size
        }
        if !part.isEmpty { try submit(part) }
    }

    private func submit(_ records: [LogRecord]) throws {
        let id = RandomID.make()
        for record in records {
            try context.db.execute(
                sql: "UPDATE log_record SET submission_id = ? WHERE message_id = ?",
                arguments: [id, record.messageID])
        }
        let list = JSONValue.array(
            records.map { record in
                .object([
                    "messageId": .text(record.messageID), "component": .text(record.component),
                    "entityKey": .text(record.entityKey), "code": .integer(Int64(record.code)),
                    "level": .text(record.level.rawValue), "message": .text(record.message),
                    "operation": .text(record.operation), "requestId": .text(record.requestID),
                    "timestamp": .integer(AttributeValue.milliseconds(of: record.timestamp) ?? 0),
                ])
            })
        try operations.insert(
            PendingOperation(
                id: id, rootID: id, parentID: nil, component: Self.component, key: "", name: "create",
                kind: .logRecords, body: try JSONValue.object(["logRecords": list]).payload()))
    }

    /// Ends the submission of records: the server has accepted them, or they can be submitted again.
    func completeSubmission(_ operationID: String, isAccepted: Bool) throws {
        let change = isAccepted ? "is_own = 0, submission_id = NULL" : "submission_id = NULL"
        try context.db.execute(sql: "UPDATE log_record SET \(change) WHERE submission_id = ?", arguments: [operationID])
    }

    /// Deletes records, except those in flight.
    func delete(_ filter: LogFilter) throws {
        try context.db.execute(
            sql: "DELETE FROM log_record WHERE submission_id IS NULL AND \(filter.condition)",
            arguments: filter.arguments)
    }
}
