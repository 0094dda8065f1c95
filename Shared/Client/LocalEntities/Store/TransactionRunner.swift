import Foundation
import GRDB
import MobileSync
import Synchronization

/// Executes transactions one at a time, and delivers their events to the handler after the commit.
final class TransactionRunner: Sendable {
    private let database: EntityDatabase
    private let clock: @Sendable () -> Date
    private let events: EventQueue
    private let gauge: Mutex<StorageGauge>

    /// - Parameter limit: the largest size of the database's file, in bytes.
    init(database: EntityDatabase, limit: Int, handler: any EntityHandler, clock: @escaping @Sendable () -> Date) {
        self.database = database
        self.clock = clock
        events = EventQueue(handler: handler)
        gauge = Mutex(StorageGauge(limit: limit))
    }

    /// Reads with exclusive use of the database.
    func read<Value>(
        _ step: String, _ body: (EntityTransaction) throws -> Value
    ) throws(EntityError) -> Value {
        try database.turn(step) { db, cipher in
            let transaction = EntityTransaction(
                TransactionContext(db, cipher: cipher, database: database, clock: clock))
            defer { transaction.end() }
            return try body(transaction)
        }
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
        let transaction = EntityTransaction(
            TransactionContext(db, cipher: cipher, database: database, clock: clock))
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
