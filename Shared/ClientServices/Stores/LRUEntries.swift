/// The entries of a bounded cache, the least recently used of which go first; pure, each call in constant time but
/// those that look at all keys.
///
/// An entry that has expired is not there; it takes room until it is met, or its turn to go comes.
struct LRUEntries<Value> {
    fileprivate struct Node {
        var key: String
        /// Nil: the node is free.
        var value: Value?
        var cost: Int
        /// Nil: never.
        var expiresAt: ContinuousClock.Instant?
        /// Towards the more recently used; `none` at the end.
        var newer: Int
        var older: Int
    }

    private static var none: Int { -1 }

    /// At least 1.
    let countLimit: Int
    /// At least 0, in the app's own unit.
    let costLimit: Int
    /// Of all entries, expired ones that were not met included.
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

    /// Entries, expired ones that were not met included.
    var count: Int { places.count }

    /// Sets an entry, the most recently used now; the least recently used go until both limits hold.
    ///
    /// - Returns: false when it costs more than all may: it is not kept, nor is the one before.
    mutating func set(_ value: Value, for key: String, cost: Int, expiresAt: ContinuousClock.Instant?) -> Bool {
        remove(key)
        let cost = max(cost, 0)
        guard cost <= costLimit else { return false }
        while !places.isEmpty, places.count >= countLimit || self.cost > costLimit - cost { remove(at: oldest) }
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

    /// The value, which is the most recently used from now on.
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

    /// The value; the order stays.
    func peek(_ key: String, at now: ContinuousClock.Instant) -> Value? {
        guard let place = places[key], !isExpired(place, now) else { return nil }
        return nodes[place].value
    }

    /// Removes an entry.
    mutating func remove(_ key: String) {
        if let place = places[key] { remove(at: place) }
    }

    /// Removes the entries whose keys are so.
    mutating func remove(where isDoomed: (String) -> Bool) {
        for (key, place) in places where isDoomed(key) { remove(at: place) }
    }

    /// Removes what has expired.
    mutating func removeExpired(at now: ContinuousClock.Instant) {
        for place in places.values where isExpired(place, now) { remove(at: place) }
    }

    /// Keys from the least to the most recently used, expired ones that were not met included.
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
