package import NIOCore
import Synchronization

/// How many connections each source has open, so that the slow ones of one cannot use up those of all others
/// (reliability SEC3).
package final class SourceConnections: Sendable {
    private let maximum: Int
    private let open = Mutex<[SourceAddress: Int]>([:])

    /// - Parameter maximum: connections of one source.
    package init(maximum: Int) { self.maximum = maximum }

    /// Counts a connection until it is closed; false: its source has as many as it may, and it is not counted.
    package func take(_ channel: any Channel) -> Bool {
        let source = SourceAddress(channel.remoteAddress)
        let isTaken = open.withLock { open in
            guard open[source, default: 0] < maximum else { return false }
            open[source, default: 0] += 1
            return true
        }
        if isTaken { channel.closeFuture.whenComplete { _ in self.giveBack(source) } }
        return isTaken
    }

    /// Sources that have any.
    package var count: Int { open.withLock { $0.count } }

    private func giveBack(_ source: SourceAddress) {
        open.withLock { open in
            let rest = open[source, default: 1] - 1
            open[source] = rest == 0 ? nil : rest
        }
    }
}
