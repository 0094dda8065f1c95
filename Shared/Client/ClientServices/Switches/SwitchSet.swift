import MobileSync

/// The switches after the last valid push; a pure value.
struct SwitchSet: Codable, Hashable, Sendable {
    /// The version of the last push; 0 before the first one.
    private(set) var version: Int64 = 0
    /// The time at which it arrived, in milliseconds since 1970.
    private(set) var fetchedAt: Int64 = 0
    private(set) var values: [String: JSONValue] = [:]

    /// Applies a push that is newer than the current set.
    ///
    /// - Parameter now: milliseconds since 1970.
    /// - Returns: the keys whose values have changed; nil when the push is not newer.
    /// - Throws: `PushFault` when there would be too many switches; nothing is changed then.
    mutating func apply(_ push: SwitchPush, now: Int64) throws(PushFault) -> Set<String>? {
        guard push.version > version else { return nil }
        var next = push.isFull ? [:] : values
        for (key, value) in push.values { next[key] = value == .null ? nil : value }
        guard next.count <= ServiceLimits.switches else {
            throw PushFault("there would be \(next.count) switches; the limit is \(ServiceLimits.switches)")
        }
        let changed = Set(values.keys).union(next.keys).filter { values[$0] != next[$0] }
        (version, fetchedAt, values) = (push.version, now, next)
        return changed
    }
}
