import Foundation
import MobileSync

/// Imports data of the server.
struct RowImporter {
    private let context: TransactionContext
    private let rows: RowStore
    private let tombstones: TombstoneStore
    private let subscriptions: SubscriptionStore
    private let logs: LogRecordStore
    private let conflicts: ConflictResolver

    init(context: TransactionContext) {
        self.context = context
        rows = RowStore(context: context)
        tombstones = TombstoneStore(context: context)
        subscriptions = SubscriptionStore(context: context)
        logs = LogRecordStore(context: context)
        conflicts = ConflictResolver(context: context)
    }

    /// Imports one payload of an entity type's Sync ID. An invalid payload is recorded as a log record and skipped,
    /// because a repeat would fail in the same way.
    func apply(payload: some Sequence<UInt8>, of typeName: String) throws {
        do {
            for entry in try ImportEntry.all(in: payload, component: typeName) { try apply(entry) }
        } catch let error as EntityError where error.code == .wrongDataType {
            try logs.add(.refusedImport(of: typeName, error, at: context.now))
        }
    }

    /// Imports one row, unless it is older than the stored one or its type is not subscribed.
    ///
    /// - Parameters:
    ///   - isOwnResult: whether the version is the result of this device's own accepted change of the row. A later edit
    ///     is then based on it, without a conflict.
    ///   - mayResubmit: as of `ConflictResolver.resolve`.
    func apply(_ entry: ImportEntry, isOwnResult: Bool = false, mayResubmit: Bool = true) throws {
        do {
            let type = try context.schema.type(entry.component)
            guard !type.isLocalOnly else {
                throw EntityError(.noSuchClass, "\(type.name) is local only and accepts no imports")
            }
            guard try subscriptions.isSubscribed(type.name) else { return }
            let old = try rows.stored(type.name, entry.key)
            let known = try old?.serverCounter ?? tombstones.counter(type.name, entry.key)
            if let known, let counter = entry.counter, counter < known { return }
            if entry.isDeleted {
                try applyDeletion(entry, to: old, type)
            } else {
                try applyVersion(entry, to: old, type, isOwnResult: isOwnResult, mayResubmit: mayResubmit)
            }
        } catch let error as EntityError where error.code != .persistence {
            try logs.add(.refusedImport(of: entry.component, key: entry.key, error, at: context.now))
        }
    }

    private func applyVersion(
        _ entry: ImportEntry, to old: StoredRow?, _ type: EntityType, isOwnResult: Bool, mayResubmit: Bool
    ) throws {
        let fields = try merged(entry, onto: old?.serverFields, type)
        var row = old ?? StoredRow(key: entry.key, fields: fields, state: .imported(counter: entry.counter))
        row.serverCounter = entry.counter ?? row.serverCounter
        if old != nil {
            switch row.state.imported(exists: true, counter: entry.counter) {
            case .applied: row.fields = fields
            case .originalChanged where isOwnResult:
                row.replaceOriginal(by: fields)
                row.takeTheirs()
                row.rebase()
            case .originalChanged: row.replaceOriginal(by: fields)
            case .originalGone, .rowRemoved: break
            }
        }
        try rows.write(&row, of: type, replacing: old)
        try tombstones.remove(type.name, entry.key)
        try conflicts.resolve(row, type, mayResubmit: mayResubmit)
        var version = row
        version.fields = fields
        context.record(.imported(Entity(type: type, row: version)))
    }

    private func applyDeletion(_ entry: ImportEntry, to old: StoredRow?, _ type: EntityType) throws {
        try tombstones.record(type.name, entry.key, counter: entry.counter)
        guard let old else { return }
        var row = old
        switch row.state.imported(exists: false, counter: entry.counter) {
        case .rowRemoved: try rows.remove(old, of: type)
        case .originalGone, .applied, .originalChanged:
            row.replaceOriginal(by: nil)
            row.serverCounter = entry.counter ?? row.serverCounter
            try rows.write(&row, of: type, replacing: old)
            try conflicts.resolve(row, type)
        }
        context.record(.imported(Entity(type: type, row: row)))
    }

    /// The server's version. Attributes that the import leaves out stay; attributes that the app does not declare are
    /// ignored, because the backend can be newer.
    private func merged(
        _ entry: ImportEntry, onto known: [String: AttributeValue]?, _ type: EntityType
    ) throws(EntityError) -> [String: AttributeValue] {
        guard let key = type.keyValue(of: entry.key) else {
            throw EntityError(.wrongDataType, "an import of \(type.name) has a key of the wrong type")
        }
        var fields = known ?? [:]
        for (name, wire) in entry.fields {
            guard let attribute = type.attributes.first(where: { $0.name == name }) else { continue }
            guard let value = AttributeValue(wire: wire, type: attribute.type) else {
                throw EntityError(.wrongDataType, "\(type.name).\(name) must be of type \(attribute.type.rawValue)")
            }
            fields[name] = value
        }
        fields[type.keyAttribute] = key
        return try type.checked(fields)
    }
}
