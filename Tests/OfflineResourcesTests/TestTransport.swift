import Synchronization

@testable import OfflineResources

/// The real transport on a network that tests interrupt.
final class TestTransport: ResourceTransport {
    enum Network: Sendable {
        case works
        /// No request leaves the device.
        case isCut
        /// Requests arrive, responses do not.
        case losesAnswers
    }

    private let inner: HTTPResourceTransport
    private let state = Mutex((network: Network.works, hook: nil as (@Sendable (ResourceRequest) async -> Void)?))

    init(url: String) throws {
        inner = try HTTPResourceTransport(baseURL: url, timeout: .seconds(20)) { userID in
            userID.map { [("Authorization", "Bearer \($0)")] } ?? []
        }
    }

    var network: Network {
        get { state.withLock { $0.network } }
        set { state.withLock { $0.network = newValue } }
    }

    /// Runs this after a response has arrived, before it is passed on.
    func beforeAnswer(_ hook: (@Sendable (ResourceRequest) async -> Void)?) { state.withLock { $0.hook = hook } }

    func relative(_ reference: String) -> String? { inner.relative(reference) }

    func send(_ request: ResourceRequest) async throws(TransportError) -> ResourceResponse {
        if network == .isCut { throw .notSent("cut") }
        let response = try await inner.send(request)
        if let hook = state.withLock({ $0.hook }) { await hook(request) }
        if network == .losesAnswers { throw .noAnswer("lost") }
        return response
    }
}
