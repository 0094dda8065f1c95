import BackendCalls
import NIOHTTP1

/// The calls of the API, by path.
enum APICall: Hashable, Sendable {
    case push(PushScope)
    /// `/webapi/sync/batch`: up to 500 single pushes (H6).
    case batch
    /// `/webapi/sync/recall`: cancels a push for every device that has not stored it (H7).
    case recall
    /// `/webapi/sync/trace`: the delivery trace of a push (H7).
    case trace
    /// `/webapi/session/revoke`: ends user sessions (H7).
    case revoke
    /// `/openapi.json`: the description of this API (H8).
    case description

    /// The call of a path; nil when the path is unknown.
    init?(path: Substring) {
        switch path {
        case "/webapi/sync/single": self = .push(.single)
        case "/webapi/sync/global": self = .push(.global)
        case "/webapi/sync/batch": self = .batch
        case "/webapi/sync/recall": self = .recall
        case "/webapi/sync/trace": self = .trace
        case "/webapi/session/revoke": self = .revoke
        case "/openapi.json": self = .description
        default: return nil
        }
    }

    /// The only method that the path accepts.
    var method: HTTPMethod {
        switch self {
        case .push, .batch, .recall, .revoke: .POST
        case .trace, .description: .GET
        }
    }

    /// The longest body in bytes (H1); 0: the call has no body.
    var bodyBytes: Int {
        switch self {
        case .push, .recall, .revoke: 65_536
        case .batch: 16 << 20
        case .trace, .description: 0
        }
    }
}
