import Synchronization

/// Limits the open streams, in all and of each account. A reservation is released with its last reference.
final class StreamCount: Sendable {
    /// The reservation of one stream.
    final class Reservation: Sendable {
        private let count: StreamCount
        private let account: String

        fileprivate init(_ count: StreamCount, _ account: String) { (self.count, self.account) = (count, account) }

        deinit { count.release(account) }
    }

    private let maximum: Int
    private let accountMaximum: Int
    private let open = Mutex<[String: Int]>([:])

    /// - Parameters:
    ///   - maximum: streams of all accounts together.
    ///   - accountMaximum: streams of one account, so that one account cannot use all of them.
    init(maximum: Int, accountMaximum: Int) {
        self.maximum = maximum
        self.accountMaximum = accountMaximum
    }

    /// Reserves a stream for an account; nil when a limit is reached.
    func reserve(for account: String) -> Reservation? {
        let isReserved = open.withLock { open in
            guard open.values.reduce(0, +) < maximum, open[account, default: 0] < accountMaximum else { return false }
            open[account, default: 0] += 1
            return true
        }
        return isReserved ? Reservation(self, account) : nil
    }

    private func release(_ account: String) {
        open.withLock { open in
            let rest = open[account, default: 1] - 1
            open[account] = rest == 0 ? nil : rest
        }
    }
}
