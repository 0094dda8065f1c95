import SyncModel
import SyncStore

/// From which turn on the next claim looks, for each instance; pure. What is over leaves the beginning of the index of
/// what waits full until the next vacuum, and claims that begin there read all of it.
///
/// First attempts of an instance become visible in the order of their turns (m0006, `lock_operation_lines`), so behind
/// one that was claimed there is every other that comes later. What comes before it all the same is told by `movedUp`,
/// or found by the claim that follows `forget`: another try after a pause, what another relay's end has let move up, a
/// claim that was lost.
struct TurnCursor {
    private var turns: [InstanceID: WallTime] = [:]

    /// Nil: from the beginning.
    func turn(of id: InstanceID) -> WallTime? { turns[id] }

    /// One claim gave these.
    mutating func claimed(_ all: [DeviceOperationStore.Held]) {
        // A second attempt has its turn after a pause, while others were taken.
        for (id, held) in Dictionary(grouping: all.filter { $0.attempts == 1 }, by: \.instanceID) {
            // Also to an earlier turn: more may be behind it than one claim takes.
            if let last = held.compactMap(\.at).max() { turns[id] = last }
        }
    }

    /// What stood behind others has its turn now, which it has had since then.
    mutating func movedUp(_ earliest: [InstanceID: WallTime]) {
        for (id, turn) in earliest { turns[id] = turns[id].map { min($0, turn) } }
    }

    /// The next claims look from the beginning.
    mutating func forget() { turns = [:] }
}
