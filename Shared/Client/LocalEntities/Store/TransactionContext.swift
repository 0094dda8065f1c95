import Foundation
import GRDB
import MobileSync

/// The database, the cipher and the clock of one transaction, and the events to deliver after its commit.
final class TransactionContext {
    let db: Database
    let cipher: StoreCipher?
    let clock: @Sendable () -> Date
    /// Decides conflicts; nil: edits stay.
    let resolver: EntityConflict.Resolver?
    private let database: EntityDatabase
    /// The events to deliver after the commit.
    private(set) var events: [EntityEvent] = []

    init(
        _ db: Database, cipher: StoreCipher?, database: EntityDatabase, clock: @escaping @Sendable () -> Date,
        resolver: EntityConflict.Resolver?
    ) {
        self.resolver = resolver
        self.db = db
        self.cipher = cipher
        self.database = database
        self.clock = clock
    }

    var schema: EntitySchema { database.schema }
    var tables: [String: EntityTable] { database.tables }
    /// Milliseconds since 1970.
    var now: Int64 { AttributeValue.milliseconds(of: clock()) ?? 0 }

    /// Adds an event to deliver after the commit.
    func record(_ event: EntityEvent) { events.append(event) }

    func table(_ typeName: String) throws(EntityError) -> EntityTable {
        guard let table = tables[typeName] else {
            throw EntityError(.noSuchClass, "no entity type \(typeName) is declared")
        }
        return table
    }
}
