/// The value of an attribute, of a parameter, or of a literal in a filter.
package enum SubscriptionValue: Sendable {
    case text(String)
    case number(Double)
    case boolean(Bool)

    /// The type of the value.
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

    /// The value as JSON. Equal values, and only those, have the same text.
    package var json: String {
        switch self {
        case .text(let text): FilterReader.quoted(text)
        // Zero has one sign.
        case .number(let number): number == 0 ? "0.0" : "\(number)"
        case .boolean(let boolean): boolean ? "true" : "false"
        }
    }

    /// Reads a JSON string, a number, true or false; nil for any other text and for a value that is not storable.
    package init?(json: String) {
        var reader = FilterReader(json)
        guard let value = try? reader.value(), reader.isAtEnd, value.isStorable else { return nil }
        self = value
    }
}

extension SubscriptionValue: Hashable {
    /// Compares texts by their bytes, because Swift treats canonical equivalents as equal.
    package static func == (left: Self, right: Self) -> Bool {
        switch (left, right) {
        case (.text(let left), .text(let right)): left.isSame(as: right)
        case (.number(let left), .number(let right)): left == right
        case (.boolean(let left), .boolean(let right)): left == right
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(json) }

    /// Whether the value is less than another of its type; nil for different types and for a type without an order.
    package func precedes(_ other: Self) -> Bool? {
        switch (self, other) {
        case (.text(let left), .text(let right)): left.precedes(right)
        case (.number(let left), .number(let right)): left < right
        default: nil
        }
    }
}

/// The type of an attribute or a parameter.
package enum SubscriptionType: String, Hashable, Sendable, CaseIterable {
    /// Compared by its bytes in UTF-8.
    case text
    /// A finite double.
    case number
    case boolean
}

/// Values by name: the attributes of an oplog, or the parameters of a filter.
package struct SubscriptionValues: Hashable, Sendable {
    private var values: [String: SubscriptionValue]

    package init(_ values: [String: SubscriptionValue] = [:]) { self.values = values }

    package subscript(_ name: String) -> SubscriptionValue? {
        get { values[name] }
        set { values[name] = newValue }
    }

    package var isEmpty: Bool { values.isEmpty }

    package var names: [String] { values.keys.sorted { $0.precedes($1) } }

    /// A JSON object with sorted members; empty without values.
    package var text: String {
        if isEmpty { return "" }
        return "{" + names.map { "\"\($0)\":\(values[$0]?.json ?? "")" }.joined(separator: ",") + "}"
    }

    /// Reads `text`; nil for a text that `text` never returns.
    package init?(text: String) {
        self.init()
        if text.isEmpty { return }
        var reader = FilterReader(text)
        guard let values = try? reader.values(), reader.isAtEnd else { return nil }
        self.values = values
    }
}

/// The value of a parameter that a device sets, or that is stored for a user on the server.
package struct DeviceParameter: Hashable, Sendable {
    package var bizType: BizType
    package var name: String
    /// A nil value means: the value is removed.
    package var value: SubscriptionValue?

    package init(bizType: BizType, name: String, value: SubscriptionValue?) {
        self.bizType = bizType
        self.name = name
        self.value = value
    }
}

extension [DeviceParameter] {
    /// The values for one Sync ID, by name.
    package func values(of bizType: BizType) -> SubscriptionValues {
        var values = SubscriptionValues()
        for parameter in self where parameter.bizType == bizType { values[parameter.name] = parameter.value }
        return values
    }
}
