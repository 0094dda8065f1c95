import GRDB
import MobileSync

/// Applies results of the server.
struct ResultApplier {
    private let context: TransactionContext
    private let rows: RowStore
    private let operations: PendingOperationStore
    private let submissions: SubmissionBuilder
    private let importer: RowImporter
    private let tombstones: TombstoneStore
    private let logs: LogRecordStore
    private let conflicts: ConflictResolver

    init(context: TransactionContext) {
        self.context = context
        rows = RowStore(context: context)
        operations = PendingOperationStore(context: context)
        submissions = SubmissionBuilder(context: context)
        importer = RowImporter(context: context)
        tombstones = TombstoneStore(context: context)
        logs = LogRecordStore(context: context)
        conflicts = ConflictResolver(context: context)
    }

    /// Applies a result: records replay success or failure for all parts that have no result yet, then imports the new
    /// state.
    ///
    /// A repeated result changes nothing.
    func apply(_ result: SyncOperationResult) throws {
        guard let operation = try operations.find(result.operationID) else { return }
        let entries = try importEntries(result, operation)
        let parts = try parts(of: operation)
        for part in parts { try operations.delete(part.id) }
        var familiesToSubmit: [(StoredRow, EntityType)] = []
        var refused: [Refused] = []
        for part in parts {
            let known = entries.last { $0.component == part.component && $0.key == part.key }
            if let family = try complete(part, result, counter: known?.counter, &refused) {
                familiesToSubmit.append(family)
            }
        }
        for entry in entries {
            let isOwnResult =
                result.isAccepted
                && parts.contains { part in
                    [.create, .update, .delete].contains(part.kind) && part.component == entry.component
                        && part.key == entry.key
                }
            let hasDraft = refused.contains { refusal in
                refusal.type.name == entry.component && refusal.key == entry.key && !refusal.mayResubmit
            }
            try importer.apply(entry, isOwnResult: isOwnResult, mayResubmit: !hasDraft)
        }
        // The app decides with the version that the result has brought.
        for refusal in refused {
            if let row = try rows.stored(refusal.type.name, refusal.key) {
                try conflicts.resolve(row, refusal.type, mayResubmit: refusal.mayResubmit)
            }
        }
        if !entries.isEmpty { context.record(.importSucceeded) }
        for (row, type) in familiesToSubmit {
            // Related rows and imports may have changed it since.
            if let row = try rows.stored(type.name, row.key) { try submissions.submitFamily(of: row, type) }
        }
    }

    /// A row whose change the server has refused.
    private struct Refused {
        let type: EntityType
        let key: String
        /// Whether the refused change is the row's last one. A later one was not submitted.
        let mayResubmit: Bool
    }

    /// The operation and all its descendants.
    private func parts(of operation: PendingOperation) throws -> [PendingOperation] {
        let all = try operations.all(where: "root_id = ?", [operation.rootID])
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
            try logs.add(.refusedImport(of: operation.component, error, at: context.now))
            return []
        }
    }

    /// Applies the result to one part.
    ///
    /// - Returns: the row that was submitted again meanwhile.
    private func complete(
        _ part: PendingOperation, _ result: SyncOperationResult, counter: Int64?, _ refused: inout [Refused]
    ) throws -> (StoredRow, EntityType)? {
        let record = LogRecord(
            messageID: RandomID.make(), component: part.component, entityKey: part.key, code: result.code,
            level: LogLevel(rawValue: result.level) ?? (result.isAccepted ? .info : .error), message: result.message,
            operation: part.name, requestID: result.requestID, timestamp: result.at, isOwn: false)
        let isReported = part.id == result.operationID || part.kind != .parent
        if isReported, !result.isAccepted || !result.message.isEmpty { try logs.add(record) }
        switch part.kind {
        case .parent: return nil
        case .logRecords:
            try logs.completeSubmission(part.id, isAccepted: result.isAccepted)
            if !result.isAccepted { context.record(.operationFailed(record)) }
            return nil
        case .other:
            context.record(
                result.isAccepted
                    ? .operationSucceeded(component: part.component, name: part.name, key: part.key)
                    : .operationFailed(record))
            return nil
        case .create, .update, .delete:
            // A type that this version of the app does not declare waits for a version that does.
            guard let type = try? context.schema.type(part.component) else { return nil }
            let old = try rows.stored(type.name, part.key)
            guard var row = old, row.operationID == part.id else {
                // The cancellation came too late, so the server's change is imported.
                if result.isAccepted { try importer.apply(lateEntry(part, type, counter)) }
                return nil
            }
            return try result.isAccepted
                ? accept(part, &row, type, counter: counter) : refuse(&row, type, record, &refused)
        }
    }

    private func accept(
        _ part: PendingOperation, _ row: inout StoredRow, _ type: EntityType, counter: Int64?
    ) throws -> (StoredRow, EntityType)? {
        let old = row
        if let counter, let known = row.serverCounter, counter < known {
            return try acceptOutdated(part, &row, type, counter: known)
        }
        row.serverCounter = counter ?? row.serverCounter
        switch row.state.succeed(counter: counter) {
        case .ignored: return nil
        case .settled:
            row.takeTheirs()
            row.endEdit()
            try rows.write(&row, of: type, replacing: old)
        case .rowRemoved:
            try rows.remove(old, of: type)
            try tombstones.record(type.name, old.key, counter: counter)
        case .pending(let submitNow):
            // The submitted fields are the server's version now; the later edit is based on them.
            row.original = part.kind == .delete ? nil : try submittedFields(part, type)
            row.rebase()
            row.operationID = nil
            try rows.write(&row, of: type, replacing: old)
            context.record(.replaySucceeded(Entity(type: type, row: row)))
            return submitNow ? (row, type) : nil
        }
        context.record(.replaySucceeded(Entity(type: type, row: row)))
        return nil
    }

    /// Applies an acceptance that arrives after a newer import: the original is that import, or the row was deleted
    /// since.
    private func acceptOutdated(
        _ part: PendingOperation, _ row: inout StoredRow, _ type: EntityType, counter: Int64
    ) throws -> (StoredRow, EntityType)? {
        let old = row
        let answer = row.state.succeed(counter: counter)
        row.operationID = nil
        switch row.state.imported(exists: old.original != nil, counter: counter) {
        case .applied:
            row.fields = old.original ?? old.fields
            row.endEdit()
            try rows.write(&row, of: type, replacing: old)
        case .rowRemoved: try rows.remove(old, of: type)
        case .originalChanged, .originalGone:
            // The later edit is based on the submitted fields, and the newer import has replaced them.
            row.original = part.kind == .delete ? nil : try submittedFields(part, type)
            row.rebase()
            row.replaceOriginal(by: old.original)
            try rows.write(&row, of: type, replacing: old)
            try conflicts.resolve(row, type)
        }
        context.record(.replaySucceeded(Entity(type: type, row: row)))
        return answer == .pending(submitNow: true) ? (row, type) : nil
    }

    private func refuse(
        _ row: inout StoredRow, _ type: EntityType, _ record: LogRecord, _ refused: inout [Refused]
    ) throws -> (StoredRow, EntityType)? {
        let old = row
        row.operationID = nil
        let answer = row.state.fail()
        switch answer {
        case .ignored, .settled: return nil
        case .rowRemoved: try rows.remove(old, of: type)
        case .pending: try rows.write(&row, of: type, replacing: old)
        }
        context.record(.replayFailed(Entity(type: type, row: row), record))
        if answer == .pending(submitNow: false) {
            refused.append(
                Refused(
                    type: type, key: row.key, mayResubmit: old.state.replayCounter == old.state.replayPending))
        }
        return answer == .pending(submitNow: true) ? (row, type) : nil
    }

    private func submittedFields(_ part: PendingOperation, _ type: EntityType) throws -> [String: AttributeValue] {
        let members = try JSONValue(payload: part.body).members?["fields"]?.members ?? [:]
        return try context.table(type.name).fields(ofWire: members)
    }

    private func lateEntry(_ part: PendingOperation, _ type: EntityType, _ counter: Int64?) throws -> ImportEntry {
        let fields = try JSONValue(payload: part.body).members?["fields"]?.members ?? [:]
        return ImportEntry(
            component: part.component, key: part.key, isDeleted: part.kind == .delete, counter: counter,
            fields: fields)
    }
}
