import SyncModel

/// The value of a subscription parameter.
public enum SyncParameterValue: Sendable, Hashable {
    /// A text of at most 200 UTF-16 units without NUL.
    case text(String)
    /// A finite number.
    case number(Double)
    /// True or false.
    case boolean(Bool)

    init(_ value: SubscriptionValue) {
        switch value {
        case .text(let text): self = .text(text)
        case .number(let number): self = .number(number)
        case .boolean(let boolean): self = .boolean(boolean)
        }
    }

    var model: SubscriptionValue {
        switch self {
        case .text(let text): .text(text)
        case .number(let number): .number(number)
        case .boolean(let boolean): .boolean(boolean)
        }
    }
}
