import SyncModel

/// A change that the user made on the device, for the backend. The client sends it as soon as possible. The backend
/// executes it once, in order for each entity.
public struct SyncOperation: Sendable, Hashable {
    /// The id of the operation. The backend executes an id once.
    public let id: String
    /// The kind of the entity. The service sends the entity's new state as oplogs of this Sync ID.
    public let component: String
    /// The key of the entity. Operations on one (`component`, `key`) keep their order.
    public let key: String
    /// The kind of the change: `create`, `update`, `delete`, or a name of the app's own.
    public let name: String
    /// The data of the change: JSON, or other bytes.
    public let body: [UInt8]
    /// Operations that belong to this one, such as the children of a new parent. The backend receives them in the same
    /// call. They cannot have children.
    public let children: [SyncOperation]

    /// Creates an operation. `SyncClient.submit` checks the limits.
    ///
    /// - Parameters:
    ///   - id: 1 to 64 printable ASCII characters; by default a random id.
    ///   - component: 1 to 30 letters, digits, `-`, `_` or `.`.
    ///   - key: 1 to 256 bytes of UTF-8.
    ///   - name: 1 to 30 characters.
    ///   - body: at most 192 KiB, together with the bodies of the children.
    ///   - children: at most 100 operations.
    public init(
        id: String = SyncOperation.makeID(), component: String, key: String, name: String, body: [UInt8] = [],
        children: [SyncOperation] = []
    ) {
        self.id = id
        self.component = component
        self.key = key
        self.name = name
        self.body = body
        self.children = children
    }

    /// Creates an id: 32 random lower-case hexadecimal digits.
    public static func makeID() -> String { LocalStore.makeID() }

    /// A description of the first violated limit, for developers; nil when `SyncClient.submit` accepts the operation.
    public var fault: String? { model(at: WallTime(milliseconds: 0)).fault }

    /// Returns the operation in the form of the protocol.
    func model(at time: WallTime) -> DeviceOperation {
        DeviceOperation(
            id: id, component: component, key: key, name: name, body: body,
            children: children.map { $0.model(at: time) }, submittedAt: time)
    }

    init(_ model: DeviceOperation) {
        self.init(
            id: model.id, component: model.component, key: model.key, name: model.name, body: model.body,
            children: model.children.map(SyncOperation.init))
    }
}
