import Foundation
import GRDB
import MobileSync

/// Taking the server's answers.
extension EntityTransaction {
    /// Takes an answer: replay success or replay failure of all parts that are not answered, then the new state.
    ///
    /// An answer that is known changes nothing.
    func take(_ result: SyncOperationResult) throws(EntityError) {
        try step("taking an answer") {
            guard let operation = try operation(result.operationID) else { return }
            let entries = try importEntries(result, operation)
            let parts = try parts(of: operation)
            for part in parts {
                try db.execute(sql: "DELETE FROM operation WHERE id = ?", arguments: [part.id])
            }
            var familiesToSubmit: [(StoredRow, EntityType)] = []
            for part in parts {
                let known = entries.last { $0.component == part.component && $0.key == part.key }
                if let family = try settle(part, result, counter: known?.counter) { familiesToSubmit.append(family) }
            }
            for entry in entries { try apply(entry) }
            if !entries.isEmpty { events.append(.importSucceeded) }
            for (row, type) in familiesToSubmit {
                // Relatives and imports may have changed it since.
                if let row = try stored(type.name, row.key) { try submitFamily(of: row, type) }
            }
        }
    }

    /// The operation and all that went with it.
    private func parts(of operation: PendingOperation) throws -> [PendingOperation] {
        let all = try operations(where: "root_id = ?", [operation.rootID])
        var taken: Set<String> = [operation.id]
        // Parents come before their children.
        return all.filter { part in
            guard part.id == operation.id || part.parentID.map(taken.contains) ?? false else { return false }
            taken.insert(part.id)
            return true
        }
    }

    private func importEntries(
        _ result: SyncOperationResult, _ operation: PendingOperation
    ) throws -> [ImportEntry] {
        guard let imported = result.imported else { return [] }
        do {
            return try ImportEntry.all(in: imported, component: operation.component)
        } catch {
            try note(.refusedImport(of: operation.component, error, at: now))
            return []
        }
    }

    /// - Returns: the row that was submitted once more meanwhile.
    private func settle(
        _ part: PendingOperation, _ result: SyncOperationResult, counter: Int64?
    ) throws -> (StoredRow, EntityType)? {
        let record = LogRecord(
            messageID: RandomID.make(), component: part.component, entityKey: part.key, code: result.code,
            level: LogLevel(rawValue: result.level) ?? (result.isAccepted ? .info : .error), message: result.message,
            operation: part.name, requestID: result.requestID, timestamp: result.at, isOwn: false)
        let isTold = part.id == result.operationID || part.kind != .parent
        if isTold, !result.isAccepted || !result.message.isEmpty { try note(record) }
        switch part.kind {
        case .parent: return nil
        case .logRecords:
            try settleLogRecords(part.id, isAccepted: result.isAccepted)
            if !result.isAccepted { events.append(.operationFailed(record)) }
            return nil
        case .other:
            events.append(
                result.isAccepted
                    ? .operationSucceeded(component: part.component, name: part.name, key: part.key)
                    : .operationFailed(record))
            return nil
        case .create, .update, .delete:
            // A type that this version of the app does not declare waits for one that does.
            guard let type = try? schema.type(part.component) else { return nil }
            let old = try stored(type.name, part.key)
            guard var row = old, row.operationID == part.id else {
                // It was cancelled too late: what the server did is news.
                if result.isAccepted { try apply(lateEntry(part, type, counter)) }
                return nil
            }
            return try result.isAccepted
                ? accept(part, &row, type, counter: counter) : refuse(&row, type, record)
        }
    }

    private func accept(
        _ part: PendingOperation, _ row: inout StoredRow, _ type: EntityType, counter: Int64?
    ) throws -> (StoredRow, EntityType)? {
        let old = row
        if let counter, let known = row.serverCounter, counter < known {
            return try acceptOutdated(&row, type, counter: known)
        }
        row.serverCounter = counter ?? row.serverCounter
        switch row.state.succeed(counter: counter) {
        case .ignored: return nil
        case .settled:
            row.endEdit()
            try write(&row, of: type, replacing: old)
        case .rowRemoved:
            try remove(old, of: type)
            try bury(type.name, old.key, counter: counter)
        case .pending(let submitNow):
            // What was submitted is the server's version now; the edit since then is on top of it.
            row.original = part.kind == .delete ? nil : try submittedFields(part, type)
            row.baseCounter = row.serverCounter
            row.operationID = nil
            try write(&row, of: type, replacing: old)
            events.append(.replaySucceeded(Entity(type: type, row: row)))
            return submitNow ? (row, type) : nil
        }
        events.append(.replaySucceeded(Entity(type: type, row: row)))
        return nil
    }

    /// Accepted, and something newer of the row came before the answer: the original is that, or it was deleted since.
    private func acceptOutdated(
        _ row: inout StoredRow, _ type: EntityType, counter: Int64
    ) throws -> (StoredRow, EntityType)? {
        let old = row
        let answer = row.state.succeed(counter: counter)
        row.operationID = nil
        switch row.state.imported(exists: old.original != nil, counter: counter) {
        case .applied:
            row.fields = old.original ?? old.fields
            row.endEdit()
            try write(&row, of: type, replacing: old)
        case .rowRemoved: try remove(old, of: type)
        case .originalChanged, .originalGone:
            row.baseCounter = row.serverCounter
            try write(&row, of: type, replacing: old)
        }
        events.append(.replaySucceeded(Entity(type: type, row: row)))
        return answer == .pending(submitNow: true) ? (row, type) : nil
    }

    private func refuse(
        _ row: inout StoredRow, _ type: EntityType, _ record: LogRecord
    ) throws -> (StoredRow, EntityType)? {
        let old = row
        row.operationID = nil
        let answer = row.state.fail()
        switch answer {
        case .ignored, .settled: return nil
        case .rowRemoved: try remove(old, of: type)
        case .pending: try write(&row, of: type, replacing: old)
        }
        events.append(.replayFailed(Entity(type: type, row: row), record))
        return answer == .pending(submitNow: true) ? (row, type) : nil
    }

    private func submittedFields(_ part: PendingOperation, _ type: EntityType) throws -> [String: AttributeValue] {
        let members = try JSONValue(parsing: part.body).members?["fields"]?.members ?? [:]
        return try table(type.name).fields(ofWire: members)
    }

    private func lateEntry(_ part: PendingOperation, _ type: EntityType, _ counter: Int64?) throws -> ImportEntry {
        let fields = try JSONValue(parsing: part.body).members?["fields"]?.members ?? [:]
        return ImportEntry(
            component: part.component, key: part.key, isDeleted: part.kind == .delete, counter: counter,
            fields: fields)
    }
}
