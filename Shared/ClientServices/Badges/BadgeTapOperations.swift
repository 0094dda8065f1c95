import Foundation
public import Logging
public import MobileSync

/// Reports taps on badges as operations of their users (README.md, Taps): kept by the client, and sent when their user
/// is bound and there is a connection.
///
/// `run()` is to be kept going beside the client's own.
public final class BadgeTapOperations: BadgeTapReporter {
    /// The operation's name.
    public static let operation = "tap"
    /// Scalars of a user id that an operation's key takes; 256 bytes are the most that it may have.
    private static let keyScalars = 64

    private struct Body: Encodable {
        let path: BadgePath
        let business: String
        let stamp: Int64?
        let at: Int64
    }

    private let client: SyncClient
    private let component: String
    private let logger: Logger

    /// - Parameter component: of the operations: the Sync ID that badges are pushed under.
    public init(client: SyncClient, component: String = Badges.syncID, logger: Logger) {
        self.client = client
        self.component = component
        self.logger = logger
    }

    /// Gives the client an operation. A tap that was made while nobody was signed in is nobody's operation, and is let
    /// go.
    ///
    /// - Throws: `SyncError.store`; it is reported again.
    public func report(_ tap: BadgeTap) throws {
        guard let userID = tap.userID else {
            return logger.debug("a tap without a user is not reported", metadata: ["path": "\(tap.path)"])
        }
        // Taps of one user stay in order, and wait for nobody else's.
        let key = String(String.UnicodeScalarView(userID.unicodeScalars.prefix(Self.keyScalars)))
        let body = Body(path: tap.path, business: tap.business, stamp: tap.stamp, at: tap.at)
        let operation = SyncOperation(
            id: tap.id, component: component, key: key, name: Self.operation,
            body: [UInt8](try JSONEncoder().encode(body)))
        if let fault = operation.fault {
            // It would not be better the next time, and others wait behind it.
            return logger.warning("a tap cannot be reported", metadata: ["reason": "\(fault)"])
        }
        try client.submit([operation], ofUser: userID)
    }

    /// Confirms what the server says of taps until the task is cancelled; then it returns. A refusal is logged: the
    /// badge stays away here.
    ///
    /// - Throws: `SyncError.store` when the client's own store cannot be read or written.
    public func run() async throws {
        for try await result in client.operationResults(of: component) {
            if !result.isAccepted {
                logger.warning(
                    "the server refused a tap", metadata: ["code": "\(result.code)", "reason": "\(result.message)"])
            }
            try await client.confirm(result)
        }
    }
}
