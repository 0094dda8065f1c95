import Concurrency
import Foundation
import GRDB
import MobileSync

/// Executes transactions one at a time, and delivers their events to the handler after the commit.
final class TransactionRunner: Sendable {
    private let database: EntityDatabase
    private let clock: @Sendable () -> Date
    private let events: EventQueue
    private let gauge: LockedValue<StorageGauge>
    private let resolver: EntityConflict.Resolver?

    /// - Parameters:
    ///   - limit: the largest size of the database's file, in bytes.
    ///   - resolver: decides conflicts; nil: edits stay.
    init(
        database: EntityDatabase, limit: Int, handler: any EntityHandler, clock: @escaping @Sendable () -> Date,
        resolver: EntityConflict.Resolver?
    ) {
        self.database = database
        self.clock = clock
        self.resolver = resolver
        events = EventQueue(handler: handler)
        gauge = LockedValue(StorageGauge(limit: limit))
    }

    /// Reads from a snapshot.
    func read<Value>(
        _ step: String, _ body: (EntitySnapshot) throws -> Value
    ) throws(EntityError) -> Value {
        try database.read(step) { db, cipher in try snapshot(db, cipher, body) }
    }

    /// Reads from a snapshot; the caller's thread does not wait.
    func readAsynchronously<Value: Sendable>(
        _ step: String, _ body: @escaping @Sendable (EntitySnapshot) throws -> Value
    ) async throws -> Value {
        try await database.readAsynchronously(step) { [self] db, cipher in try snapshot(db, cipher, body) }
    }

    /// Reads now and after each commit that changes the rows it read (`EntityDatabase.observe`).
    func observe<Value: Sendable & Equatable>(
        _ fetch: @escaping @Sendable (EntitySnapshot) throws -> Value,
        onError: @escaping @Sendable (any Error) -> Void, onChange: @escaping @Sendable (Value) -> Void
    ) -> AnyDatabaseCancellable {
        database.observe(
            { [self] db, cipher in try snapshot(db, cipher, fetch) }, onError: onError, onChange: onChange)
    }

    private func snapshot<Value>(
        _ db: Database, _ cipher: StoreCipher?, _ body: (EntitySnapshot) throws -> Value
    ) rethrows -> Value {
        let snapshot = EntitySnapshot(context(db, cipher))
        defer { snapshot.end() }
        return try body(snapshot)
    }

    private func context(_ db: Database, _ cipher: StoreCipher?) -> TransactionContext {
        TransactionContext(db, cipher: cipher, database: database, clock: clock, resolver: resolver)
    }

    /// Executes one transaction, then delivers its events to the handler.
    func write<Value>(
        _ step: String, _ body: (EntityTransaction) throws -> Value
    ) throws(EntityError) -> Value {
        defer { events.deliver() }
        return try database.turn(step) { db, cipher in
            let value = try attempt(step, db, cipher, body)
            measure(db)
            return value
        }
    }

    private func attempt<Value>(
        _ step: String, _ db: Database, _ cipher: StoreCipher?, _ body: (EntityTransaction) throws -> Value
    ) throws -> Value {
        let transaction = EntityTransaction(context(db, cipher))
        defer { transaction.end() }
        var value: Value?
        do {
            try db.inTransaction(.immediate) {
                value = try body(transaction)
                return .commit
            }
        } catch {
            let error = EntityError.wrapping(error, step)
            if error.isStoreFull { record(gauge.withLock { $0.measured($0.limit) }) }
            throw error
        }
        events.add(transaction.context.events)
        guard let value else { throw EntityError(.persistence, "a transaction returned no value") }
        return value
    }

    private func measure(_ db: Database) {
        guard let pages = try? Int.fetchOne(db, sql: "PRAGMA page_count"),
            let free = try? Int.fetchOne(db, sql: "PRAGMA freelist_count"),
            let size = try? Int.fetchOne(db, sql: "PRAGMA page_size")
        else { return }
        record(gauge.withLock { $0.measured((pages - free) * size) })
    }

    private func record(_ change: StorageGauge.Change) {
        switch change {
        case .none: break
        case .low: events.add([.storageSpaceLow])
        case .recovered: events.add([.storageSpaceRecovered])
        }
    }

    /// Delivers an event that belongs to no transaction.
    func notify(_ event: EntityEvent) {
        events.add([event])
        events.deliver()
    }
}
