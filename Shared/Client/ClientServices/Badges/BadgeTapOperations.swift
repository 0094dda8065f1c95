import Foundation
public import Logging
public import MobileSync

/// Reports taps on badges as operations of their users (README.md, Taps). The client stores each operation and sends it
/// when its user is bound and connected.
///
/// Run `run()` in a task for as long as `SyncClient.run()` runs.
public final class BadgeTapOperations: BadgeTapReporter {
    /// The operation's name.
    public static let operation = "tap"
    /// The longest prefix of a user id, in Unicode scalars, that an operation's key contains: the key has at most 256
    /// bytes.
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

    /// Makes a reporter.
    ///
    /// - Parameter component: the component of the operations; by default the Sync ID of the badges.
    public init(client: SyncClient, component: String = Badges.syncID, logger: Logger) {
        self.client = client
        self.component = component
        self.logger = logger
    }

    /// Submits an operation for the tap. A tap without a signed-in user is dropped, because an operation needs a user.
    ///
    /// - Throws: `SyncError.store`; `Badges` then reports the tap again.
    public func report(_ tap: BadgeTap) throws {
        guard let userID = tap.userID else {
            return logger.debug(
                "a badge tap is not reported because no user was signed in", metadata: ["path": "\(tap.path)"])
        }
        // The user id as key keeps the taps of one user in order and independent of other users' taps.
        let key = String(String.UnicodeScalarView(userID.unicodeScalars.prefix(Self.keyScalars)))
        let body = Body(path: tap.path, business: tap.business, stamp: tap.stamp, at: tap.at)
        let operation = SyncOperation(
            id: tap.id, component: component, key: key, name: Self.operation,
            body: [UInt8](try JSONEncoder().encode(body)))
        if let fault = operation.fault {
            // A retry would fail in the same way and delay the taps behind this one.
            return logger.warning(
                "a badge tap is dropped because its operation is invalid", metadata: ["reason": "\(fault)"])
        }
        try client.submit([operation], ofUser: userID)
    }

    /// Confirms the results of tap operations until the task is cancelled, then returns. A refusal is logged; the badge
    /// stays hidden on this device.
    ///
    /// - Throws: `SyncError.store` when the client's local store cannot be read or written.
    public func run() async throws {
        for try await result in client.operationResults(of: component) {
            if !result.isAccepted {
                logger.warning(
                    "the server refused a badge tap",
                    metadata: ["code": "\(result.code)", "reason": "\(result.message)"])
            }
            try await client.confirm(result)
        }
    }
}
