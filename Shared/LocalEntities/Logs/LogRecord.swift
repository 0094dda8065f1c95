public import Foundation

/// What the server, or this device, has to say about an operation (spec, two-way §2).
public struct LogRecord: Sendable, Hashable {
    /// Of this record.
    public let messageID: String
    /// The entity type's name; empty when it is about none.
    public let component: String
    /// The entity's key; empty when it is about none.
    public let entityKey: String
    /// As HTTP's: 200, 401, 403, 404, 405, 500 and others.
    public let code: Int
    /// How serious it is.
    public let level: LogLevel
    /// For people.
    public let message: String
    /// `create`, `update`, `delete`, `import`, the app's own.
    public let operation: String
    /// By which the backend finds the call in its own logs.
    public let requestID: String
    /// When it was written, to the millisecond.
    public let timestamp: Date
    /// Written by this device, and not accepted by the server.
    public let isOwn: Bool

    /// Where a sealed message stands.
    static func messagePlace(_ id: String) -> String { "log/\(id)" }
}
