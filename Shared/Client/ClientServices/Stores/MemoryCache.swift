import Concurrency

/// A cache in memory, limited by count and cost. The least recently used entries are removed first. Any number of tasks
/// can use it at once.
///
/// Call `removeAll()` when the system reports low memory.
public final class MemoryCache<Value: Sendable>: Sendable {
    private let entries: LockedValue<LRUEntries<Value>>
    private let now: @Sendable () -> ContinuousClock.Instant

    /// Makes an empty cache.
    ///
    /// - Parameters:
    ///   - countLimit: the largest number of entries; at least 1.
    ///   - costLimit: the largest sum of the entries' costs, in a unit that the app chooses, such as bytes.
    public init(
        countLimit: Int, costLimit: Int = .max,
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        entries = LockedValue(LRUEntries(countLimit: countLimit, costLimit: costLimit))
        self.now = now
    }

    /// Stores an entry as the most recently used one. Other entries are removed until both limits hold.
    ///
    /// - Parameters:
    ///   - cost: the cost of the entry; at least 0.
    ///   - lifetime: the time until the entry expires, including the time in which the device sleeps; nil: it does not
    ///     expire.
    /// - Returns: false when the entry costs more than the limit; the key then has no entry.
    @discardableResult public func set(
        _ value: Value, for key: String, cost: Int = 1, lifetime: Duration? = nil
    ) -> Bool {
        let expiresAt = lifetime.map { now() + $0 }
        return entries.withLock { $0.set(value, for: key, cost: cost, expiresAt: expiresAt) }
    }

    /// Stores several entries, each with a cost of 1, in the order of their keys.
    public func set(_ values: [String: Value], lifetime: Duration? = nil) {
        let expiresAt = lifetime.map { now() + $0 }
        entries.withLock { entries in
            for (key, value) in values.sorted(by: { $0.key < $1.key }) {
                _ = entries.set(value, for: key, cost: 1, expiresAt: expiresAt)
            }
        }
    }

    /// Changes the limits. The least recently used entries are removed until both hold.
    public func setLimits(count: Int, cost: Int = .max) {
        entries.withLock { $0.setLimits(count: count, cost: cost) }
    }

    /// Reads a value and makes it the most recently used one; nil when there is none or it has expired.
    public func value(for key: String) -> Value? {
        let now = now()
        return entries.withLock { $0.value(for: key, at: now) }
    }

    /// Reads a value and does not change the order of use.
    public func peek(_ key: String) -> Value? {
        let now = now()
        return entries.withLock { $0.peek(key, at: now) }
    }

    /// Reads the most recently used entries, newest first, or the least recently used ones, oldest first. Does not
    /// change the order of use.
    public func peek(_ count: Int, fromNewest: Bool = true) -> [(key: String, value: Value)] {
        let now = now()
        return entries.withLock { entries in
            let keys = entries.keysFromOldest
            let found = (fromNewest ? keys.reversed() : keys).compactMap { key in
                entries.peek(key, at: now).map { (key: key, value: $0) }
            }
            return Array(found.prefix(max(count, 0)))
        }
    }

    /// Whether there is a valid value. Does not change the order of use.
    public func exists(_ key: String) -> Bool { peek(key) != nil }

    /// The number of entries that have not expired.
    public var count: Int {
        let now = now()
        return entries.withLock { entries in
            entries.removeExpired(at: now)
            return entries.count
        }
    }

    /// The cost of the entries that have not expired.
    public var cost: Int {
        let now = now()
        return entries.withLock { entries in
            entries.removeExpired(at: now)
            return entries.cost
        }
    }

    /// Removes the entries of these keys.
    public func remove(_ keys: [String]) { entries.withLock { entries in for key in keys { entries.remove(key) } } }

    /// Removes the entries whose keys start with a prefix.
    public func remove(prefix: String) { entries.withLock { $0.remove { $0.hasPrefix(prefix) } } }

    /// Removes the entries whose keys end with a suffix.
    public func remove(suffix: String) { entries.withLock { $0.remove { $0.hasSuffix(suffix) } } }

    /// Removes the entries whose keys contain a match of a regular expression.
    ///
    /// - Throws: `ClientServiceError.invalidArgument` when the pattern is not a regular expression.
    public func remove(pattern: String) throws(ClientServiceError) {
        let expression = try ServiceLimits.expression(of: pattern)
        // The match runs outside the lock, because an expression can take long.
        let matching = entries.withLock { $0.keysFromOldest }.filter { $0.contains(expression) }
        remove(matching)
    }

    /// Removes all entries.
    public func removeAll() { entries.withLock { $0.remove { _ in true } } }
}
