public import Foundation

/// A message of the server or of this device about an operation (ENT6).
public struct LogRecord: Sendable, Hashable {
    /// The id of the record.
    public let messageID: String
    /// The entity type's name; empty when the record concerns no type.
    public let component: String
    /// The row's key; empty when the record concerns no row.
    public let entityKey: String
    /// A code with HTTP's meaning: 200, 401, 403, 404, 405, 500 and others.
    public let code: Int
    /// The severity.
    public let level: LogLevel
    /// The message, for people.
    public let message: String
    /// The operation: `create`, `update`, `delete`, `import`, or an operation of the app.
    public let operation: String
    /// The id of the call in the backend's own logs.
    public let requestID: String
    /// The time of the record, in whole milliseconds.
    public let timestamp: Date
    /// Whether this device wrote the record and the server has not accepted it yet.
    public let isOwn: Bool

    /// The context with which a message is encrypted.
    static func messagePlace(_ id: String) -> String { "log/\(id)" }
}
