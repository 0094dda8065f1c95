public import Foundation

/// What became of an operation.
public struct SyncOperationResult: Sendable, Hashable {
    /// The operation's id.
    public let operationID: String
    /// The operation's own.
    public let component: String
    /// The operation's own.
    public let key: String
    /// The operation's own.
    public let name: String
    /// The backend has done it; otherwise it has not, for the reason given.
    public let isAccepted: Bool
    /// 200 when it was accepted; the backend's status, or one of the service (DeviceProtocol.md, Operations).
    public let code: Int
    /// `INFO` when it was accepted, otherwise `ERROR`.
    public let level: String
    /// For people, as far as the backend says anything.
    public let message: String
    /// The service's own number of the call, for whoever looks into a log.
    public let requestID: String
    /// When it was known.
    public let at: Date
    /// The entity's new state as JSON, where the backend gave one that fits; it comes as an oplog of the component too.
    public let imported: [UInt8]?

    /// Describes a result; for tests of apps, as the client makes its own.
    public init(
        operationID: String, component: String, key: String, name: String, isAccepted: Bool, code: Int, level: String,
        message: String, requestID: String, at: Date, imported: [UInt8]?
    ) {
        self.operationID = operationID
        self.component = component
        self.key = key
        self.name = name
        self.isAccepted = isAccepted
        self.code = code
        self.level = level
        self.message = message
        self.requestID = requestID
        self.at = at
        self.imported = imported
    }
}
