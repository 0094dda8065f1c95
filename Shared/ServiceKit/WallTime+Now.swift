import Foundation
package import SyncModel

extension WallTime {
    /// This machine's civil time.
    package static var now: WallTime {
        WallTime(milliseconds: Int64((Date.now.timeIntervalSince1970 * 1_000).rounded(.down)))
    }
}
