/// A bounded table of recently used values; pure.
///
/// It has two halves. When a period ends, or when the young half is full, the old half is dropped and the young one
/// becomes the old one. So a value without use for two periods is dropped. A value that was used within one period
/// stays, unless the table is full.
package struct ExpiringTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private var young: [Key: Value] = [:]
    private var old: [Key: Value] = [:]
    private var turnedAt: ContinuousClock.Instant?
    private let period: Duration
    private let halfMaximum: Int

    /// - Parameters:
    ///   - period: the shortest time for which a used value is kept.
    ///   - maximum: maximum number of values, at least 2.
    package init(keepingFor period: Duration, maximum: Int) {
        self.period = period
        halfMaximum = max(1, maximum / 2)
    }

    /// The number of values.
    package var count: Int { young.count + old.count }

    /// Changes the value of a key; an unknown key starts with a new value.
    package mutating func update<Result>(
        _ key: Key, at now: ContinuousClock.Instant, new: @autoclosure () -> Value, _ change: (inout Value) -> Result
    ) -> Result {
        age(at: now)
        if young[key] == nil, young.count >= halfMaximum { turn(at: now) }
        var value = young[key] ?? old.removeValue(forKey: key) ?? new()
        defer { young[key] = value }
        return change(&value)
    }

    private mutating func age(at now: ContinuousClock.Instant) {
        guard let turnedAt else {
            self.turnedAt = now
            return
        }
        let passed = turnedAt.duration(to: now)
        if passed >= period * 2 { young = [:] }
        if passed >= period { turn(at: now) }
    }

    private mutating func turn(at now: ContinuousClock.Instant) {
        old = young
        young = [:]
        turnedAt = now
    }
}
