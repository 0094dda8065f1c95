public import Foundation

/// The result of an operation.
public struct SyncOperationResult: Sendable, Hashable {
    /// The id of the operation.
    public let operationID: String
    /// The component of the operation.
    public let component: String
    /// The key of the operation.
    public let key: String
    /// The name of the operation.
    public let name: String
    /// Whether the backend has executed the operation. When false, `code` and `message` have the reason.
    public let isAccepted: Bool
    /// 200 when it was accepted. Otherwise the backend's status, or a code of the service (`DeviceProtocol.md`,
    /// Operations).
    public let code: Int
    /// `INFO` when it was accepted, otherwise `ERROR`.
    public let level: String
    /// The backend's message for the user; can be empty.
    public let message: String
    /// The service's number of the call to the backend, to find it in logs.
    public let requestID: String
    /// The time when the result became known.
    public let at: Date
    /// The entity's new state as JSON, if the backend returned one that fits into the result. It also arrives as an
    /// oplog of the component.
    public let imported: [UInt8]?

    /// Creates a result, for tests of apps. The client creates its results itself.
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
