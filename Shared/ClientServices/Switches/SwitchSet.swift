/// The switches as of the last good push; pure.
struct SwitchSet: Codable, Hashable, Sendable {
    /// Of the last push; 0 before the first.
    private(set) var version: Int64 = 0
    /// When that came, in milliseconds since 1970.
    private(set) var fetchedAt: Int64 = 0
    private(set) var values: [String: SwitchValue] = [:]

    /// Takes a push, unless it is not newer than what is here.
    ///
    /// - Parameter now: in milliseconds since 1970.
    /// - Returns: the keys whose values are others now; nil: nothing has changed, the push is known.
    /// - Throws: `PushFault` for too many switches; nothing has changed.
    mutating func take(_ push: SwitchPush, now: Int64) throws(PushFault) -> Set<String>? {
        guard push.version > version else { return nil }
        var next = push.isFull ? [:] : values
        for (key, value) in push.values { next[key] = value == .null ? nil : value }
        guard next.count <= ServiceLimits.switches else {
            throw PushFault("it makes \(next.count) switches; at most \(ServiceLimits.switches) are kept")
        }
        let changed = Set(values.keys).union(next.keys).filter { values[$0] != next[$0] }
        (version, fetchedAt, values) = (push.version, now, next)
        return changed
    }
}
