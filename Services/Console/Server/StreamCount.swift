import Synchronization

/// How many streams are open, in all and of each account; each gives its place back when nobody holds it any more.
final class StreamCount: Sendable {
    /// One stream.
    final class Place: Sendable {
        private let count: StreamCount
        private let account: String

        fileprivate init(_ count: StreamCount, _ account: String) { (self.count, self.account) = (count, account) }

        deinit { count.giveBack(account) }
    }

    private let maximum: Int
    private let accountMaximum: Int
    private let open = Mutex<[String: Int]>([:])

    /// - Parameters:
    ///   - maximum: of all accounts together.
    ///   - accountMaximum: of one account: what one leaves open keeps no other out.
    init(maximum: Int, accountMaximum: Int) {
        self.maximum = maximum
        self.accountMaximum = accountMaximum
    }

    /// A place for one more of an account; nil: there are as many as may be.
    func take(for account: String) -> Place? {
        let isTaken = open.withLock { open in
            guard open.values.reduce(0, +) < maximum, open[account, default: 0] < accountMaximum else { return false }
            open[account, default: 0] += 1
            return true
        }
        return isTaken ? Place(self, account) : nil
    }

    private func giveBack(_ account: String) {
        open.withLock { open in
            let rest = open[account, default: 1] - 1
            open[account] = rest == 0 ? nil : rest
        }
    }
}
