import Concurrency

/// The observers of the notifications of the iOS compatibility API, by object and Sync ID.
final class BizObservers: Sendable {
    /// The closures that remove the observers.
    private let removals = LockedValue<[String: [ObjectIdentifier: @Sendable () -> Void]]>([:])

    /// Adds an observer of a Sync ID.
    func insert(_ observer: ObjectIdentifier, of bizType: String, removal: @escaping @Sendable () -> Void) {
        removals.withLock { $0[bizType, default: [:]][observer] = removal }
    }

    /// Removes an observer of a Sync ID.
    ///
    /// - Returns: whether the observer was registered, and whether the Sync ID has no other observer.
    func remove(_ observer: ObjectIdentifier, of bizType: String) -> (wasThere: Bool, isLast: Bool) {
        let (removal, isLast) = removals.withLock { removals in
            let removal = removals[bizType]?.removeValue(forKey: observer)
            return (removal, removals[bizType]?.isEmpty ?? true)
        }
        removal?()
        return (removal != nil, isLast)
    }

    /// Returns the Sync IDs that an object observes.
    func bizTypes(of observer: ObjectIdentifier) -> [String] {
        removals.withLock { removals in removals.filter { $0.value[observer] != nil }.map(\.key) }
    }

    /// Removes all observers.
    func removeAll() {
        let all = removals.withLock { removals in
            defer { removals = [:] }
            return removals.values.flatMap(\.values)
        }
        for removal in all { removal() }
    }
}
