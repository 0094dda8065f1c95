import Foundation
import GRDB
import MobileSync

extension LogRecord {
    /// An import that could not be taken.
    static func refusedImport(
        of component: String, key: String = "", _ error: any Error, at milliseconds: Int64
    ) -> LogRecord {
        LogRecord(
            messageID: RandomID.make(), component: component, entityKey: key, code: 500, level: .error,
            message: "\(error)", operation: "import", requestID: "",
            timestamp: Date(timeIntervalSince1970: Double(milliseconds) / 1_000), isOwn: false)
    }
}

/// Log records.
extension EntityTransaction {
    /// The component that log records go up as.
    static let logComponent = "LogRecord"

    /// Keeps a record; the oldest of the server's go when there are too many.
    func note(_ record: LogRecord) throws {
        let message = Data(record.message.utf8)
        try db.cachedStatement(sql: "INSERT INTO log_record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL)")
            .execute(arguments: [
                record.messageID, record.component, record.entityKey, record.code, record.level.rawValue,
                try cipher?.seal(message, for: LogRecord.messagePlace(record.messageID)) ?? message,
                record.operation, record.requestID, AttributeValue.milliseconds(of: record.timestamp) ?? 0,
                record.isOwn,
            ])
        try db.cachedStatement(
            sql: """
                DELETE FROM log_record WHERE message_id IN (
                    SELECT message_id FROM log_record WHERE submission_id IS NULL ORDER BY is_own, timestamp_ms, rowid
                    LIMIT max(0, (SELECT count(*) FROM log_record) - ?))
                """
        ).execute(arguments: [EntityLimits.logRecords])
    }

    /// Records, newest first.
    func logRecords(_ filter: LogFilter, limit: Int?) throws -> [LogRecord] {
        let columns =
            "message_id, component, entity_key, code, level, message, operation, request_id, timestamp_ms, is_own"
        let rows = try Row.fetchAll(
            db,
            sql: """
                SELECT \(columns) FROM log_record WHERE \(filter.condition)
                ORDER BY timestamp_ms DESC, rowid DESC LIMIT ?
                """, arguments: filter.arguments + [limit ?? -1])
        return try rows.map { row in
            let (id, level, message): (String, String, Data) = (row[0], row[4], row[5])
            let milliseconds: Int64 = row[8]
            let plain = try cipher?.open(message, for: LogRecord.messagePlace(id)) ?? message
            return LogRecord(
                messageID: id, component: row[1], entityKey: row[2], code: row[3],
                level: LogLevel(rawValue: level) ?? .error, message: String(decoding: plain, as: UTF8.self),
                operation: row[6], requestID: row[7],
                timestamp: Date(timeIntervalSince1970: Double(milliseconds) / 1_000), isOwn: row[9])
        }
    }

    /// Marks the records that this device has written, and that are not on their way, to go up in as few operations as
    /// their limits allow.
    func submitLogRecords() throws {
        var (part, bytes) = ([LogRecord](), 0)
        for record in try logRecords(.ownUnsent, limit: nil).reversed() {
            // JSON has up to six bytes for one of the text.
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
            try db.execute(
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
        try insert(
            PendingOperation(
                id: id, rootID: id, parentID: nil, component: Self.logComponent, key: "", name: "create",
                kind: .logRecords, body: try JSONValue.object(["logRecords": list]).bytes()))
    }

    /// The server has the records of an operation, or does not take them: then they may be submitted again.
    func settleLogRecords(_ operationID: String, isAccepted: Bool) throws {
        let change = isAccepted ? "is_own = 0, submission_id = NULL" : "submission_id = NULL"
        try db.execute(sql: "UPDATE log_record SET \(change) WHERE submission_id = ?", arguments: [operationID])
    }

    /// Forgets records.
    func deleteLogRecords(_ filter: LogFilter) throws {
        try db.execute(
            sql: "DELETE FROM log_record WHERE submission_id IS NULL AND \(filter.condition)",
            arguments: filter.arguments)
    }
}
