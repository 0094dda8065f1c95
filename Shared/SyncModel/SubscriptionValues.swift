/// Values by their names: the attributes of an oplog, or the parameters that a filter is evaluated with.
package struct SubscriptionValues: Hashable, Sendable {
    private var values: [String: SubscriptionValue]

    package init(_ values: [String: SubscriptionValue] = [:]) { self.values = values }

    package subscript(_ name: String) -> SubscriptionValue? {
        get { values[name] }
        set { values[name] = newValue }
    }

    package var isEmpty: Bool { values.isEmpty }

    package var names: [String] { values.keys.sorted { $0.precedes($1) } }

    /// A JSON object with its members in the order of their names; empty where there are no values.
    package var text: String {
        if isEmpty { return "" }
        return "{" + names.map { "\"\($0)\":\(values[$0]?.json ?? "")" }.joined(separator: ",") + "}"
    }

    /// Reads `text`; nil for what it never gives.
    package init?(text: String) {
        self.init()
        if text.isEmpty { return }
        var reader = FilterReader(text)
        guard let values = try? reader.values(), reader.isAtEnd else { return nil }
        self.values = values
    }
}
