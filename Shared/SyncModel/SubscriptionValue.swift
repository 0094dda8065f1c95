/// The value of an attribute of an oplog, of a subscription parameter, or of a literal in a filter.
package enum SubscriptionValue: Sendable {
    case text(String)
    case number(Double)
    case boolean(Bool)

    /// What kind of value it is.
    package var type: SubscriptionType {
        switch self {
        case .text: .text
        case .number: .number
        case .boolean: .boolean
        }
    }

    /// Whether it may be stored: a text has at most `Limits.subscriptionValueUnits` UTF-16 units and no NUL, and a
    /// number is finite.
    package var isStorable: Bool {
        switch self {
        case .text(let text): text.utf16.count <= Limits.subscriptionValueUnits && !text.utf8.contains(0)
        case .number(let number): number.isFinite
        case .boolean: true
        }
    }

    /// As JSON has it; values that are equal, and no others, have one text.
    package var json: String {
        switch self {
        case .text(let text): FilterReader.quoted(text)
        // A zero has one sign.
        case .number(let number): number == 0 ? "0.0" : "\(number)"
        case .boolean(let boolean): boolean ? "true" : "false"
        }
    }

    /// Reads a JSON string, number, true or false; nil for anything else, and for what may not be stored.
    package init?(json: String) {
        var reader = FilterReader(json)
        guard let value = try? reader.value(), reader.isAtEnd, value.isStorable else { return nil }
        self = value
    }
}

extension SubscriptionValue: Hashable {
    /// Texts by their bytes: Swift calls some equal that are not.
    package static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.text(let left), .text(let right)): left.isSame(as: right)
        case (.number(let left), .number(let right)): left == right
        case (.boolean(let left), .boolean(let right)): left == right
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(json) }

    /// Whether it stands before another of its type; nil: they are not of one type that has an order.
    package func precedes(_ other: Self) -> Bool? {
        switch (self, other) {
        case (.text(let left), .text(let right)): left.precedes(right)
        case (.number(let left), .number(let right)): left < right
        default: nil
        }
    }
}
