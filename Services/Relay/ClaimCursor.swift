import SyncModel
import SyncStore

/// The turn from which the next claim of each instance reads; pure. The index of waiting operations keeps the entries
/// of finished operations at its beginning until the next vacuum, and a claim from the beginning would read all of
/// them.
///
/// First attempts of an instance become visible in the order of their turns (SQL function `lock_operation_lines`), so
/// later operations come after a claimed one. An operation with an earlier turn becomes known by `advanced`, or by the
/// claim that follows `forget`: a retry after a pause, an operation whose predecessor another relay has finished, or a
/// lost claim.
struct ClaimCursor {
    private var turns: [InstanceID: WallTime] = [:]

    /// The turn of an instance; nil: claim from the beginning.
    func turn(of id: InstanceID) -> WallTime? { turns[id] }

    /// Records the operations of one claim.
    mutating func claimed(_ all: [DeviceOperationStore.StoredOperation]) {
        // A retry has its turn after a pause, and other operations were claimed meanwhile.
        for (id, stored) in Dictionary(grouping: all.filter { $0.attempts == 1 }, by: \.instanceID) {
            // The turn can also fall, because there can be more operations after it than one claim returns.
            if let last = stored.compactMap(\.at).max() { turns[id] = last }
        }
    }

    /// Records operations that became the first of their lines. Each has had its turn since then.
    mutating func advanced(_ earliest: [InstanceID: WallTime]) {
        for (id, turn) in earliest { turns[id] = turns[id].map { min($0, turn) } }
    }

    /// Makes the next claims read from the beginning.
    mutating func forget() { turns = [:] }
}
