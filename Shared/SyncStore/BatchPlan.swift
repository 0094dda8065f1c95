package import PostgreSQL
import SyncModel

/// Which parts of a batch are to be stored next, and what becomes of those that the database does not take; pure. Its
/// owner does each step in turn and tells what came of it.
///
/// Elements of one key are stored in their order or not at all: once one of them has failed in a way that its sender
/// repeats, those behind it fail too. An element that is refused for its own value holds up nobody, as nobody repeats it.
package struct BatchPlan<Element, Key: Hashable> {
    package enum Step {
        /// To be stored together, in this order; then `stored` or `failed` is called.
        case store([Element])
        /// The database can never take this element.
        case refuse(Element, PostgresError)
        /// These were not stored, or it is not known; their senders may repeat them.
        case fail([Element], PostgresError)
    }

    /// How often a part is repeated; each time may take a lock time-out (1 s).
    private let repeatsMax: Int
    private let isIdempotent: Bool
    private let key: (Element) -> Key?
    /// Parts to be stored, the first first; the first one is under way after `store`.
    private var parts: [[Element]]
    private var answers: [Step] = []
    private var failed: [Key: PostgresError] = [:]
    /// How often the first part was repeated.
    private var repeats = 0

    /// - Parameters:
    ///   - partMax: elements of one part at the most.
    ///   - repeatsMax: after these repeats a part fails.
    ///   - isIdempotent: storing twice is harmless, so whatever is no fault of a value is repeated, an unknown outcome too.
    ///   - key: elements with the same key keep their order; nil: the element has no order.
    package init(
        _ elements: [Element], partMax: Int = .max, repeatsMax: Int = 2, isIdempotent: Bool = false,
        key: @escaping (Element) -> Key?
    ) {
        let size = max(1, min(partMax, elements.count))
        parts = stride(from: 0, to: elements.count, by: size).map { start in
            Array(elements[start..<min(start + size, elements.count)])
        }
        self.repeatsMax = repeatsMax
        self.isIdempotent = isIdempotent
        self.key = key
    }

    /// The next step; nil: all have been stored or answered.
    package mutating func next() -> Step? {
        if !answers.isEmpty { return answers.removeFirst() }
        guard let part = parts.first else { return nil }
        let blocked = part.filter { key($0).map { failed[$0] != nil } ?? false }
        guard !blocked.isEmpty else { return .store(part) }
        parts[0] = part.filter { key($0).map { failed[$0] == nil } ?? true }
        if parts[0].isEmpty { removeFirst() }
        for element in blocked {
            if let error = key(element).flatMap({ failed[$0] }) { answers.append(.fail([element], error)) }
        }
        return next()
    }

    /// The part was stored.
    package mutating func stored() { removeFirst() }

    /// The part was not stored.
    ///
    /// - Parameters:
    ///   - mayRepeat: false: there is no time left to repeat it.
    ///   - locked: keys that are held by another transaction: their elements fail, so that the others do not wait for
    ///     them once more.
    package mutating func failed(with error: PostgresError, mayRepeat: Bool, locked: Set<Key> = []) {
        guard let part = parts.first else { return }
        #if KNOWN_BAD
            if KnownBad.halvesOnEveryRefusal.isOn, case .server = error.code {
                guard part.count == 1 else { return halve(part) }
                removeFirst()
                return answers.append(.fail(part, error))
            }
        #endif
        let remedy = error.batchRemedy
        switch remedy == .fail && isIdempotent ? .repeatWhole : remedy {
        case .halve where part.count > 1: halve(part)
        case .halve:
            removeFirst()
            answers.append(.refuse(part[0], error))
        case .repeatWhole where mayRepeat && repeats < repeatsMax:
            repeats += 1
            for key in locked { failed[key] = error }
        case .repeatWhole, .fail:
            removeFirst()
            for case let key? in part.map(key) { failed[key] = error }
            answers.append(.fail(part, error))
        }
    }

    private mutating func halve(_ part: [Element]) {
        let middle = part.count / 2
        parts.replaceSubrange(..<1, with: [Array(part[..<middle]), Array(part[middle...])])
        repeats = 0
    }

    private mutating func removeFirst() {
        parts.removeFirst()
        repeats = 0
    }
}
