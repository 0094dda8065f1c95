import Foundation
import MobileSync

/// An app on a phone of a torture run: a client library with a local store. It reports each hand-out and each event to
/// its `TortureDevice`, which decides whether the app confirms the hand-out.
protocol TortureApp: Sendable {
    /// Runs until ``end()``, and reports to the phone.
    ///
    /// - Throws: if the app ends by itself.
    func run(on phone: TortureDevice) async throws

    /// Ends the app without a confirmation of open work. Its store remains.
    ///
    /// - Throws: `TortureFailure` if the app has not stored a submitted operation in time.
    func end() async throws

    func bind(user: String, session: String) throws

    /// Stores the operations of the bound user for submission.
    func submit(_ operations: [SyncOperation]) throws
}

/// The values with which an app starts.
struct TortureAppStart: Sendable {
    let port: Int
    let instance: String
    let device: String
    let store: URL
    /// Path of the PEM file.
    let certificateAuthority: String
    /// Time by which the phone's clock is fast; negative for a slow clock.
    let clockOffset: Duration
    let version = "1.0"
}

/// A change of an app's connection or session.
enum TortureAppEvent: Sendable, CustomStringConvertible {
    /// The app has received its backlog. The user is nil without a bind.
    case caughtUp(user: String?)
    /// The app has no connection, for this reason.
    case disconnected(String)
    case sessionInvalid
    /// Another event, for the report.
    case other(String)

    var description: String {
        switch self {
        case .caughtUp(let user): user.map { "caught up as \($0)" } ?? "caught up without a user"
        case .disconnected(let reason): "disconnected: \(reason)"
        case .sessionInvalid: "session invalid"
        case .other(let text): text
        }
    }
}

/// An oplog that an app received. The names of the members are those of the Java driver's output.
struct TortureOplog: Sendable, Decodable {
    let bizType: String
    let oplogId: Int64
    /// The value is nil for data that needs no user.
    let userId: String?
    let thirdMsgId: String?
    let attempt: Int
    /// Id of the recalled oplog. The value is nil for a push.
    let recalls: Int64?
    /// The value is nil for a tombstone.
    let text: String?

    var payload: String { text ?? "" }
}

/// The result of an operation that an app received. The names of the members are those of the Java driver's output.
struct TortureResult: Sendable, Decodable {
    let operationId: String
    let isAccepted: Bool
    let code: Int
}
