/// What a request asks for, by its path.
enum APICall: Hashable, Sendable {
    case push(PushScope)
    /// `/webapi/sync/batch`: up to 500 single pushes (spec H6).
    case batch

    /// The call of a path; nil when there is none.
    init?(path: Substring) {
        switch path {
        case "/webapi/sync/single": self = .push(.single)
        case "/webapi/sync/global": self = .push(.global)
        case "/webapi/sync/batch": self = .batch
        default: return nil
        }
    }

    /// Bytes of a body (spec H1).
    var bodyBytes: Int {
        switch self {
        case .push: 65_536
        case .batch: 16 << 20
        }
    }
}
