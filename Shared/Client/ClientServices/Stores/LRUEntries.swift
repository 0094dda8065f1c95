/// The entries of a cache with limits; the least recently used entries are removed first. A pure value. Calls take
/// constant time, except those that visit all keys.
///
/// An expired entry is not returned. It counts until a call finds it or the limits remove it.
struct LRUEntries<Value> {
    fileprivate struct Node {
        var key: String
        /// A nil value means: the node is free.
        var value: Value?
        var cost: Int
        /// A nil value means: never.
        var expiresAt: ContinuousClock.Instant?
        /// The next more recently used node; `none` at the end.
        var newer: Int
        var older: Int
    }

    private static var none: Int { -1 }

    /// At least 1.
    private(set) var countLimit: Int
    /// At least 0; the app chooses the unit.
    private(set) var costLimit: Int
    /// The cost of all entries, including expired ones that no call has found yet.
    private(set) var cost = 0
    private var places: [String: Int] = [:]
    private var nodes: [Node] = []
    private var free: [Int] = []
    private var newest = Self.none
    private var oldest = Self.none

    init(countLimit: Int, costLimit: Int) {
        self.countLimit = max(countLimit, 1)
        self.costLimit = max(costLimit, 0)
    }

    /// The number of entries, including expired ones that no call has found yet.
    var count: Int { places.count }

    /// Stores an entry as the most recently used one. The least recently used entries are removed until both limits
    /// hold.
    ///
    /// - Returns: false when the entry costs more than the limit; the key then has no entry.
    mutating func set(_ value: Value, for key: String, cost: Int, expiresAt: ContinuousClock.Instant?) -> Bool {
        remove(key)
        let cost = max(cost, 0)
        guard cost <= costLimit else { return false }
        makeRoom(count: 1, cost: cost)
        let node = Node(
            key: key, value: value, cost: cost, expiresAt: expiresAt, newer: Self.none, older: Self.none)
        let place: Int
        if let reused = free.popLast() {
            place = reused
            nodes[place] = node
        } else {
            place = nodes.count
            nodes.append(node)
        }
        places[key] = place
        self.cost += cost
        link(place)
        return true
    }

    /// Changes the limits. The least recently used entries are removed until both limits hold.
    mutating func setLimits(count: Int, cost: Int) {
        (countLimit, costLimit) = (max(count, 1), max(cost, 0))
        makeRoom(count: 0, cost: 0)
    }

    /// Removes the least recently used entries until others with this count and cost are within the limits.
    private mutating func makeRoom(count: Int, cost: Int) {
        while !places.isEmpty, places.count > countLimit - count || self.cost > costLimit - cost { remove(at: oldest) }
    }

    /// Reads a value and makes it the most recently used one.
    mutating func value(for key: String, at now: ContinuousClock.Instant) -> Value? {
        guard let place = places[key] else { return nil }
        guard !isExpired(place, now) else {
            remove(at: place)
            return nil
        }
        unlink(place)
        link(place)
        return nodes[place].value
    }

    /// Reads a value and does not change the order.
    func peek(_ key: String, at now: ContinuousClock.Instant) -> Value? {
        guard let place = places[key], !isExpired(place, now) else { return nil }
        return nodes[place].value
    }

    /// Removes an entry.
    mutating func remove(_ key: String) {
        if let place = places[key] { remove(at: place) }
    }

    /// Removes the entries whose keys match.
    mutating func remove(where isRemoved: (String) -> Bool) {
        for (key, place) in places where isRemoved(key) { remove(at: place) }
    }

    /// Removes expired entries.
    mutating func removeExpired(at now: ContinuousClock.Instant) {
        for place in places.values where isExpired(place, now) { remove(at: place) }
    }

    /// The keys from the least to the most recently used, including expired ones that no call has found yet.
    var keysFromOldest: [String] {
        var (keys, place): ([String], Int) = ([], oldest)
        while place != Self.none {
            keys.append(nodes[place].key)
            place = nodes[place].newer
        }
        return keys
    }

    private func isExpired(_ place: Int, _ now: ContinuousClock.Instant) -> Bool {
        nodes[place].expiresAt.map { $0 <= now } ?? false
    }

    private mutating func remove(at place: Int) {
        unlink(place)
        places[nodes[place].key] = nil
        cost -= nodes[place].cost
        nodes[place].value = nil
        nodes[place].key = ""
        free.append(place)
    }

    private mutating func link(_ place: Int) {
        nodes[place].older = newest
        nodes[place].newer = Self.none
        if newest == Self.none { oldest = place } else { nodes[newest].newer = place }
        newest = place
    }

    private mutating func unlink(_ place: Int) {
        let (newer, older) = (nodes[place].newer, nodes[place].older)
        if newer == Self.none { newest = older } else { nodes[newer].older = older }
        if older == Self.none { oldest = newer } else { nodes[older].newer = newer }
    }
}

extension LRUEntries: Sendable where Value: Sendable {}
extension LRUEntries.Node: Sendable where Value: Sendable {}
