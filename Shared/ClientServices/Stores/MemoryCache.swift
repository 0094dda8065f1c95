import Synchronization

/// A cache in memory, bounded by count and cost; the least recently used go first. For any number of tasks at once.
///
/// When the system says that memory is short, the app calls `removeAll()`.
public final class MemoryCache<Value: Sendable>: Sendable {
    private let entries: Mutex<LRUEntries<Value>>
    private let now: @Sendable () -> ContinuousClock.Instant

    /// - Parameters:
    ///   - countLimit: entries, at least 1.
    ///   - costLimit: the sum of the entries' costs, in a unit of the app's own, such as bytes.
    public init(
        countLimit: Int, costLimit: Int = .max,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        entries = Mutex(LRUEntries(countLimit: countLimit, costLimit: costLimit))
        self.now = now
    }

    /// Sets an entry, the most recently used now; others go until both limits hold.
    ///
    /// - Parameters:
    ///   - cost: at least 0.
    ///   - lifetime: nil: it does not expire. Time goes on while the device sleeps.
    /// - Returns: false when it alone costs more than all may: nothing is kept under the key then.
    @discardableResult public func set(
        _ value: Value, for key: String, cost: Int = 1, lifetime: Duration? = nil
    ) -> Bool {
        let expiresAt = lifetime.map { now() + $0 }
        return entries.withLock { $0.set(value, for: key, cost: cost, expiresAt: expiresAt) }
    }

    /// The value, which is the most recently used from now on; nil: there is none, or it has expired.
    public func value(for key: String) -> Value? {
        let now = now()
        return entries.withLock { $0.value(for: key, at: now) }
    }

    /// The value, without being a use of it.
    public func peek(_ key: String) -> Value? {
        let now = now()
        return entries.withLock { $0.peek(key, at: now) }
    }

    /// Whether there is a value, without being a use of it.
    public func exists(_ key: String) -> Bool { peek(key) != nil }

    /// Entries now, without those that have expired.
    public var count: Int {
        let now = now()
        return entries.withLock { entries in
            entries.removeExpired(at: now)
            return entries.count
        }
    }

    /// What the entries cost now, without those that have expired.
    public var cost: Int {
        let now = now()
        return entries.withLock { entries in
            entries.removeExpired(at: now)
            return entries.cost
        }
    }

    /// Removes these.
    public func remove(_ keys: [String]) { entries.withLock { entries in for key in keys { entries.remove(key) } } }

    /// Removes those whose keys begin so.
    public func remove(prefix: String) { entries.withLock { $0.remove { $0.hasPrefix(prefix) } } }

    /// Removes those whose keys end so.
    public func remove(suffix: String) { entries.withLock { $0.remove { $0.hasSuffix(suffix) } } }

    /// Removes those in whose keys a regular expression is found.
    ///
    /// - Throws: `ClientServiceError.invalidArgument` for what is no regular expression.
    public func remove(pattern: String) throws(ClientServiceError) {
        let expression: Regex<AnyRegexOutput>
        do { expression = try Regex(pattern) } catch {
            throw ClientServiceError(.invalidArgument, "\(pattern) is not a regular expression: \(error)")
        }
        // Keys are read first: an expression may take its time.
        let doomed = entries.withLock { $0.keysFromOldest }.filter { $0.contains(expression) }
        remove(doomed)
    }

    /// Removes everything.
    public func removeAll() { entries.withLock { $0.remove { _ in true } } }
}
