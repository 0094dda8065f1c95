/// What goes up: a row's change, an operation of the app's own, or log records; with what goes in the same call.
public struct EntityOperation: Sendable, Hashable {
    /// By which it is known from end to end; 32 lower-case hex digits.
    public let id: String
    /// The entity type's name.
    public let component: String
    /// The entity's key; empty when it is about none. Order is kept per component and key.
    public let key: String
    /// `create`, `update`, `delete`, the app's own; `children` when only children go.
    public let name: String
    /// JSON (README, What goes up).
    public let body: [UInt8]
    /// In the same call: a parent's children.
    public let children: [EntityOperation]

    /// An operation; stores make them, and tests of submitters.
    public init(
        id: String, component: String, key: String, name: String, body: [UInt8], children: [EntityOperation] = []
    ) {
        self.id = id
        self.component = component
        self.key = key
        self.name = name
        self.body = body
        self.children = children
    }
}
