import SyncModel

/// Something that the app's user did, for the backend: sent as soon as it can be, done once, in order for each entity.
public struct SyncOperation: Sendable, Hashable {
    /// Names it for good: the backend does an operation of an id once.
    public let id: String
    /// What kind of thing it is done to; the backend's new state comes as oplogs of this Sync ID.
    public let component: String
    /// Which thing; order is kept for each (component, key).
    public let key: String
    /// `create`, `update`, `delete`, or the app's own.
    public let name: String
    /// JSON, or any bytes.
    public let body: [UInt8]
    /// Done with it, in the same call, such as the children of a new parent; they have no children of their own.
    public let children: [SyncOperation]

    /// Describes an operation; `SyncClient.submit` checks it.
    ///
    /// - Parameters:
    ///   - id: 1 to 64 printable ASCII characters.
    ///   - component: 1 to 30 letters, digits, `-`, `_` or `.`.
    ///   - key: 1 to 256 bytes of UTF-8.
    ///   - name: 1 to 30 characters.
    ///   - body: with those of the children at most 192 KiB.
    ///   - children: at most 100.
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

    /// A new id: 32 lower-case hex digits, random.
    public static func makeID() -> String { LocalStore.makeID() }

    /// What is wrong with it, for people; nil when `SyncClient.submit` takes it.
    public var fault: String? { model(at: WallTime(milliseconds: 0)).fault }

    /// What the protocol knows of it.
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
