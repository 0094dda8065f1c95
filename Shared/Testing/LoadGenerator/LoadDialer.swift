import NIOCore
import NIOPosix
import NIOSSL

/// Opens the connections of a load run on its event loop.
final class LoadDialer {
    let loop: any EventLoop
    private let apis: [SocketAddress]
    private let gateways: [SocketAddress]
    private let tls: NIOSSLContext
    /// Value of the `Host` header.
    let host: String

    init(loop: any EventLoop, apis: [SocketAddress], gateways: [SocketAddress], host: String, tls: NIOSSLContext) {
        self.loop = loop
        self.apis = apis
        self.gateways = gateways
        self.host = host
        self.tls = tls
    }

    /// Connects a backend connection. Connections rotate over the addresses.
    func call(_ caller: LoadCaller, _ number: Int) -> EventLoopFuture<Void> {
        let bound = NIOLoopBound(caller, eventLoop: loop)
        return connect(to: apis[number % apis.count]) { channel in
            try channel.pipeline.syncOperations.addHandler(bound.value)
        }
    }

    /// Connects a device. Devices and repeated attempts rotate over the addresses.
    func connect(_ device: LoadDevice) -> EventLoopFuture<Void> {
        let bound = NIOLoopBound((device, tls), eventLoop: loop)
        return connect(to: gateways[(device.number + device.connection.failures) % gateways.count]) { channel in
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
