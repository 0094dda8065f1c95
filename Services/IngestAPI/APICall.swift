import BackendCalls
import NIOHTTP1

/// What a request asks for, by its path.
enum APICall: Hashable, Sendable {
    case push(PushScope)
    /// `/webapi/sync/batch`: up to 500 single pushes (spec H6).
    case batch
    /// `/webapi/sync/recall`: nobody who has not stored it gets it (spec H7).
    case recall
    /// `/webapi/sync/trace`: why did it not arrive? (spec H7).
    case trace
    /// `/webapi/session/revoke`: verdicts from before do not count (spec H7).
    case revoke
    /// `/openapi.json`: the description of this API (spec H8).
    case description

    /// The call of a path; nil when there is none.
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

    /// The only method of its path.
    var method: HTTPMethod {
        switch self {
        case .push, .batch, .recall, .revoke: .POST
        case .trace, .description: .GET
        }
    }

    /// Bytes of a body (spec H1); 0: there is none.
    var bodyBytes: Int {
        switch self {
        case .push, .recall, .revoke: 65_536
        case .batch: 16 << 20
        case .trace, .description: 0
        }
    }
}
