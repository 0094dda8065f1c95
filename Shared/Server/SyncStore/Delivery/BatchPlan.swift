package import PostgreSQL
import SyncModel

/// The order in which parts of a batch are stored, and the answers to elements that the database refuses; pure. The
/// caller performs each step in turn and reports the result.
///
/// Elements of one key are stored in their order or not at all: after a failure that the sender repeats, later elements
/// of the key fail too. An element that is refused for its own value stops no other, because its sender does not repeat
/// it.
package struct BatchPlan<Element, Key: Hashable> {
    package enum Step {
        /// Store these together, in this order; then call `stored` or `failed`.
        case store([Element])
        /// The database can never take this element.
        case refuse(Element, PostgresError)
        /// These were not stored, or the outcome is unknown; their senders may repeat them.
        case fail([Element], PostgresError)
    }

    /// The number of repeats of a part; each may take a lock time-out (1 s).
    private let repeatsMax: Int
    private let isIdempotent: Bool
    private let key: (Element) -> Key?
    /// Parts that are not stored yet, in their order; the first one is in flight after `store`.
    private var parts: [[Element]]
    private var answers: [Step] = []
    private var failed: [Key: PostgresError] = [:]
    /// The repeats of the first part.
    private var repeats = 0

    /// - Parameters:
    ///   - partMax: the largest number of elements in one part.
    ///   - repeatsMax: a part fails after this number of repeats.
    ///   - isIdempotent: storing twice is harmless, so every failure without a bad value is repeated, also an unknown
    ///     outcome.
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

    /// The next step; nil: all elements are stored or answered.
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
    ///   - mayRepeat: false: no time is left for a repeat.
    ///   - locked: keys that another transaction has locked: their elements fail, so that the others do not wait for
    ///     them again.
    package mutating func failed(with error: PostgresError, mayRepeat: Bool, locked: Set<Key> = []) {
        guard let part = parts.first else { return }
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
