import Foundation
import GRDB
import Synchronization

/// Keys that are made on the device, without asking anybody (spec, two-way §2).
public final class LocalKeyGenerator: Sendable {
    private let database: EntityDatabase
    /// Ids that are on the disk as taken, and were not given yet.
    private let left = Mutex<Range<Int64>>(0..<0)

    init(database: EntityDatabase) { self.database = database }

    /// A number that this store never gives again, over restarts too; from 1. Other devices have the same numbers, so
    /// it is for rows that stay here.
    ///
    /// - Throws: `EntityError.persistence`.
    public func generateId() throws(EntityError) -> Int64 {
        if let id = next() { return id }
        let last = try database.transaction("generating ids") { db, _ in
            try Int64.fetchOne(
                db, sql: "UPDATE store SET last_local_id = last_local_id + ? RETURNING last_local_id",
                arguments: [EntityLimits.localIDsAtOnce])
        }
        guard let last else { throw EntityError(.persistence, "the store has lost its count of ids") }
        let taken = (last - EntityLimits.localIDsAtOnce + 1)..<(last + 1)
        left.withLock { left in
            // Another caller may have fetched meanwhile; then these are never given, but for the first.
            if left.isEmpty { left = (taken.lowerBound + 1)..<taken.upperBound }
        }
        return taken.lowerBound
    }

    private func next() -> Int64? {
        left.withLock { left in
            guard let id = left.first else { return nil }
            left = (id + 1)..<left.upperBound
            return id
        }
    }

    /// A UUID in 36 lower-case characters, which nobody else has.
    public func generateGuid() -> String { UUID().uuidString.lowercased() }
}
