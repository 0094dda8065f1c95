import NIOCore
import NIOPosix
import Synchronization

/// Stands in front of a server, for one client's connections to it, and makes the network between them bad on demand.
final class FaultProxy: Sendable {
    /// What the server speaks, as far as faults care.
    enum Speech: Sendable {
        case amqp, other
    }

    private struct State {
        var fault: EdgeFault?
        var links: [ObjectIdentifier: FaultLink] = [:]
    }

    let name: String
    let port: Int
    let speech: Speech
    private let listener: any Channel
    private let state: Shared

    /// What the proxy and its connections share.
    final class Shared: Sendable {
        private let state = Mutex(State())

        var fault: EdgeFault? { state.withLock { $0.fault } }

        fileprivate func set(_ fault: EdgeFault?) -> [FaultLink] {
            state.withLock { state in
                state.fault = fault
                return Array(state.links.values)
            }
        }

        func add(_ link: FaultLink) { state.withLock { $0.links[ObjectIdentifier(link)] = link } }
        func remove(_ link: FaultLink) { state.withLock { _ = $0.links.removeValue(forKey: ObjectIdentifier(link)) } }
    }

    private init(name: String, speech: Speech, listener: any Channel, state: Shared) {
        self.name = name
        self.speech = speech
        self.listener = listener
        self.state = state
        port = listener.localAddress?.port ?? 0
    }

    /// Listens on the loopback address.
    ///
    /// - Parameters:
    ///   - name: client and server, for the report.
    ///   - port: the server's.
    static func start(_ name: String, before port: Int, speech: Speech = .other) async throws -> FaultProxy {
        let state = Shared()
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.backlog, value: 4_096)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: false)
            .childChannelInitializer { client in
                if state.fault == .cut { return client.eventLoop.makeFailedFuture(ChannelError.ioOnClosedChannel) }
                return ClientBootstrap(group: client.eventLoop)
                    .channelOption(.tcpOption(.tcp_nodelay), value: 1)
                    .connect(host: "127.0.0.1", port: port)
                    .flatMapThrowing { server in
                        let link = FaultLink(client: client, server: server, state: state, speech: speech)
                        try link.install()
                    }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return FaultProxy(name: name, speech: speech, listener: listener, state: state)
    }

    /// Makes it bad, or with nil good again: what was held back arrives then.
    func set(_ fault: EdgeFault?) {
        for link in state.set(fault) { link.faultChanged(fault) }
    }

    /// Resets the connections that there are.
    func reset() { for link in state.set(state.fault) { link.reset() } }

    /// Accepts no more, and ends what there is.
    func stop() async {
        try? await listener.close()
        reset()
    }
}
