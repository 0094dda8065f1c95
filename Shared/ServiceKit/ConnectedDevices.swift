package import SyncModel
import Synchronization

/// How many devices of each instance this process has connected now: reports carry it to consoles (spec C1).
package final class ConnectedDevices: Sendable {
    private let current = Mutex<[InstanceID: Int]>([:])

    init() {}

    /// Notes how it is; instances without devices may be left out.
    package func note(_ counts: [InstanceID: Int]) { current.withLock { $0 = counts } }

    /// As it was noted last.
    var counts: [InstanceID: Int] { current.withLock { $0 } }
}
