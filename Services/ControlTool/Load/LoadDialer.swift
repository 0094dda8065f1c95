import NIOCore
import NIOPosix
import NIOSSL

/// Makes a load run's connections, all on its one event loop.
final class LoadDialer {
    private let loop: any EventLoop
    private let apis: [SocketAddress]
    private let gateways: [SocketAddress]
    private let tls: NIOSSLContext
    /// As calls name it.
    let host: String

    init(loop: any EventLoop, apis: [SocketAddress], gateways: [SocketAddress], host: String, tls: NIOSSLContext) {
        self.loop = loop
        self.apis = apis
        self.gateways = gateways
        self.host = host
        self.tls = tls
    }

    /// Connects a backend's connection; addresses take turns.
    func call(_ caller: LoadCaller, _ number: Int) -> EventLoopFuture<Void> {
        let bound = NIOLoopBound(caller, eventLoop: loop)
        return connect(to: apis[number % apis.count]) { channel in
            try channel.pipeline.syncOperations.addHandler(bound.value)
        }
    }

    /// Connects a device; addresses take turns, also when one is not reached.
    func connect(_ device: LoadDevice) -> EventLoopFuture<Void> {
        let bound = NIOLoopBound((device, tls), eventLoop: loop)
        return connect(to: gateways[(device.number + device.failures) % gateways.count]) { channel in
            let (device, tls) = bound.value
            try channel.pipeline.syncOperations.addHandlers([
                try NIOSSLClientHandler(context: tls, serverHostname: nil), device,
            ])
        }
    }

    private func connect(
        to address: SocketAddress, _ initialize: @escaping @Sendable (any Channel) throws -> Void
    ) -> EventLoopFuture<Void> {
        ClientBootstrap(group: loop)
            .channelOption(.tcpOption(.tcp_nodelay), value: 1)
            .channelInitializer { channel in channel.eventLoop.makeCompletedFuture { try initialize(channel) } }
            .connect(to: address).map { _ in }
    }
}
