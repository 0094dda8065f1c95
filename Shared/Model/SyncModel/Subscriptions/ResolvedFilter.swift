/// A filter with one receiver's values. It is stored, sent to gateways, and compared to detect a change.
package struct ResolvedFilter: Hashable, Sendable {
    private let filter: SubscriptionFilter?
    private let values: SubscriptionValues
    /// The stored form: the values, a line break, the filter; empty: it matches everything.
    package let text: String

    /// Matches every oplog.
    package static let everything = ResolvedFilter()

    private init() {
        (filter, values, text) = (nil, SubscriptionValues(), "")
    }

    /// - Parameter text: the filter's source text.
    package init(filter: SubscriptionFilter, text: String, values: SubscriptionValues) {
        self.filter = filter
        self.values = values
        self.text = "\(values.text)\n\(text)"
    }

    /// Reads `text`; nil for a text that `text` never returns.
    package init?(text: String) {
        guard !text.isEmpty else {
            self = .everything
            return
        }
        let scalars = text.unicodeScalars
        guard let end = scalars.firstIndex(of: "\n"), let values = SubscriptionValues(text: String(text[..<end])),
            let filter = try? SubscriptionFilter(String(text[scalars.index(after: end)...]))
        else { return nil }
        (self.filter, self.values, self.text) = (filter, values, text)
    }

    /// Whether an oplog with these attributes, in the form of `SubscriptionValues.text`, is for the receiver.
    package func matches(attributes: String) -> Bool {
        guard let filter else { return true }
        return filter.matches(SubscriptionValues(text: attributes) ?? SubscriptionValues(), with: values)
    }

    package static func == (left: Self, right: Self) -> Bool { left.text.isSame(as: right.text) }

    package func hash(into hasher: inout Hasher) { hasher.combine(text) }
}
