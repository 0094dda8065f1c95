import Synchronization

/// Who listens to which of the iOS face's notifications, by object and Sync ID.
final class BizObservers: Sendable {
    /// How to end each one's listening.
    private let removals = Mutex<[String: [ObjectIdentifier: @Sendable () -> Void]]>([:])

    /// Notes an observer that listens to a Sync ID.
    func insert(_ observer: ObjectIdentifier, of bizType: String, removal: @escaping @Sendable () -> Void) {
        removals.withLock { $0[bizType, default: [:]][observer] = removal }
    }

    /// Ends one listening.
    ///
    /// - Returns: whether there was one, and whether nobody else listens to the Sync ID.
    func remove(_ observer: ObjectIdentifier, of bizType: String) -> (wasThere: Bool, isLast: Bool) {
        let (removal, isLast) = removals.withLock { removals in
            let removal = removals[bizType]?.removeValue(forKey: observer)
            return (removal, removals[bizType]?.isEmpty ?? true)
        }
        removal?()
        return (removal != nil, isLast)
    }

    /// The Sync IDs that an object listens to.
    func bizTypes(of observer: ObjectIdentifier) -> [String] {
        removals.withLock { removals in removals.filter { $0.value[observer] != nil }.map(\.key) }
    }

    /// Ends every listening.
    func removeAll() {
        let all = removals.withLock { removals in
            defer { removals = [:] }
            return removals.values.flatMap(\.values)
        }
        for removal in all { removal() }
    }
}
