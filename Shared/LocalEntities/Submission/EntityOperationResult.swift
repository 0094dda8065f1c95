public import Foundation

/// The server's answer to an operation.
public struct EntityOperationResult: Sendable, Hashable {
    /// The operation's id; a root's answer holds for its children that have none of their own.
    public let operationID: String
    /// Replay success or replay failure.
    public let isAccepted: Bool
    /// As HTTP's: 200, or 400 to 599.
    public let code: Int
    /// OFF, FATAL, ERROR, WARN, INFO or DEBUG.
    public let level: String
    /// For people; empty when there is none.
    public let message: String
    /// By which the backend finds the call in its own logs.
    public let requestID: String
    /// When it was answered.
    public let at: Date
    /// The server's new state, in the form of an entity oplog; nil when it gave none.
    public let imported: [UInt8]?

    /// An answer; adapters of submitters make them.
    public init(
        operationID: String, isAccepted: Bool, code: Int = 200, level: String = "INFO", message: String = "",
        requestID: String = "", at: Date = Date(timeIntervalSince1970: 0), imported: [UInt8]? = nil
    ) {
        self.operationID = operationID
        self.isAccepted = isAccepted
        self.code = code
        self.level = level
        self.message = message
        self.requestID = requestID
        self.at = at
        self.imported = imported
    }
}
