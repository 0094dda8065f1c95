import Concurrency
import Foundation
import GRDB

/// Generates keys on the device without the server (ENT2).
public final class LocalKeyGenerator: Sendable {
    private let database: EntityDatabase
    /// Ids that are reserved on disk and not used yet.
    private let left = LockedValue<Range<Int64>>(0..<0)

    init(database: EntityDatabase) { self.database = database }

    /// Returns a number that this store never returns again, also after restarts; from 1. Other devices generate the
    /// same numbers, so use it for rows that stay on the device.
    ///
    /// - Throws: `EntityError.persistence`.
    public func generateId() throws(EntityError) -> Int64 {
        if let id = next() { return id }
        let last = try database.transaction("generating ids") { db, _ in
            try Int64.fetchOne(
                db, sql: "UPDATE store SET last_local_id = last_local_id + ? RETURNING last_local_id",
                arguments: [EntityLimits.localIDsAtOnce])
        }
        guard let last else { throw EntityError(.persistence, "the store has no counter of local ids") }
        let taken = (last - EntityLimits.localIDsAtOnce + 1)..<(last + 1)
        left.withLock { left in
            // Another caller may have reserved ids meanwhile. Then only the first id of this range is used.
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

    /// Returns a new UUID with 36 lower-case characters, which is unique across devices.
    public func generateGuid() -> String { UUID().uuidString.lowercased() }
}
