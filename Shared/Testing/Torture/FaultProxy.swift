import NIOCore
import NIOPosix
import Synchronization

/// Forwards one client's connections to a server, and injects network faults on demand.
final class FaultProxy: Sendable {
    /// The server's protocol, as far as faults depend on it.
    enum ServerProtocol: Sendable {
        case amqp, other
    }

    private struct State {
        var fault: EdgeFault?
        var links: [ObjectIdentifier: FaultLink] = [:]
    }

    let name: String
    let port: Int
    let serverProtocol: ServerProtocol
    private let listener: any Channel
    private let state: Shared

    /// State that the proxy and its connections share.
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

    private init(name: String, serverProtocol: ServerProtocol, listener: any Channel, state: Shared) {
        self.name = name
        self.serverProtocol = serverProtocol
        self.listener = listener
        self.state = state
        port = listener.localAddress?.port ?? 0
    }

    /// Listens on the loopback address.
    ///
    /// - Parameters:
    /// - name: client and server, for the report.
    /// - port: the server's port.
    static func start(_ name: String, before port: Int, serverProtocol: ServerProtocol = .other) async throws
        -> FaultProxy
    {
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
                        let link = FaultLink(
                            client: client, server: server, state: state, serverProtocol: serverProtocol)
                        try link.install()
                    }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        return FaultProxy(name: name, serverProtocol: serverProtocol, listener: listener, state: state)
    }

    /// Begins a fault on all connections. A nil value heals it and forwards held data.
    func set(_ fault: EdgeFault?) {
        for link in state.set(fault) { link.faultChanged(fault) }
    }

    /// Resets the open connections.
    func reset() { for link in state.set(state.fault) { link.reset() } }

    /// Stops listening and resets the open connections.
    func stop() async {
        try? await listener.close()
        reset()
    }
}
