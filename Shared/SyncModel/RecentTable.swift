/// What is known of those that were seen lately, bounded; pure.
///
/// It has two halves. Every period, and when the young half is full, the old half is dropped and the young one becomes
/// old: so what was not touched for two periods is gone, and nothing that was touched within one is, unless the table
/// is full.
package struct RecentTable<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private var young: [Key: Value] = [:]
    private var old: [Key: Value] = [:]
    private var turnedAt: ContinuousClock.Instant?
    private let period: Duration
    private let halfMaximum: Int

    /// - Parameters:
    ///   - period: for so long at least a value must not be forgotten.
    ///   - maximum: values at one time, at least 2.
    package init(keepingFor period: Duration, maximum: Int) {
        self.period = period
        halfMaximum = max(1, maximum / 2)
    }

    /// Values in it.
    package var count: Int { young.count + old.count }

    /// Changes the value of a key; a key that is not known begins with a new one.
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
