import NIOCore
import NIOHTTP1
import NIOPosix
package import NIOSSL
import ServiceKit
import SyncModel
import Synchronization

/// A pool of connections to tenants' endpoints, each to one checked address. An idle connection is reused for the same
/// tenant, host and address.
///
/// The address is pinned: no name is resolved here. TLS and the Host field use the host of the URL.
package final class TenantConnections: Sendable {
    /// The calls that may use a connection. Tenants never share one, even at the same host: leftover bytes of one
    /// tenant must not become the verdict on another tenant's session.
    struct Key: Hashable, Sendable {
        let instanceID: InstanceID
        let isHTTPS: Bool
        let host: CalloutURL.Host
        let address: IPAddress
        let port: Int

        init(_ instanceID: InstanceID, _ url: CalloutURL, at address: IPAddress) {
            self.instanceID = instanceID
            (isHTTPS, host, port) = (url.isHTTPS, url.host, url.port)
            self.address = address
        }
    }

    /// Maximum idle time; shorter than that of most servers.
    private static let idleLimit = TimeAmount.seconds(15)
    /// Maximum number of idle connections of all tenants; further ones are closed.
    private static let idleMax = 256
    /// File descriptors for other uses: the broker, health, event loops, lookups.
    private static let otherFiles = 256

    /// Maximum number of calls in flight of all tenants, so that no call fails for lack of a file descriptor.
    ///
    /// - Parameter openFiles: the process's limit of open files.
    package static func callsMax(openFiles: Int) -> Int { max(64, min(4_096, openFiles - idleMax - otherFiles)) }

    private let group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton
    private let tls: NIOSSLContext
    /// For connecting and the TLS handshake.
    private let connectLimit: Duration
    /// Maximum bytes of a response body.
    private let bodyMax: Int
    private let idle = Mutex<[Key: [any Channel]]>([:])

    /// - Parameters:
    ///   - connectLimit: for connecting and the TLS handshake.
    ///   - bodyMax: maximum bytes of a response body.
    ///   - authorityFile: PEM file with the authorities of tenants' certificates; nil: the system's.
    /// - Throws: when the file cannot be read.
    init(connectLimit: Duration, bodyMax: Int, authorityFile: String?) throws {
        self.bodyMax = bodyMax
        self.connectLimit = connectLimit
        var configuration = TLSConfiguration.makeClientConfiguration()
        configuration.minimumTLSVersion = .tlsv12
        configuration.applicationProtocols = ["http/1.1"]
        if let authorityFile { configuration.trustRoots = .certificates(try Self.authorities(authorityFile)) }
        tls = try NIOSSLContext(configuration: configuration)
    }

    /// Reads the certificates of a PEM file.
    ///
    /// - Throws: when the file cannot be read or has no certificate.
    package static func authorities(_ file: String) throws -> [NIOSSLCertificate] {
        let found = try NIOSSLCertificate.fromPEMFile(file)
        guard !found.isEmpty else { throw NIOSSLError.failedToLoadCertificate }
        return found
    }

    /// An event loop for the callers' futures.
    var loop: any EventLoop { group.any() }

    /// The most recently used idle connection.
    func idleConnection(for key: Key) -> (any Channel)? {
        idle.withLock { idle in
            while let channel = idle[key]?.popLast() { if channel.isActive { return channel } }
            idle[key] = nil
            return nil
        }
    }

    /// Returns a connection to the pool, or closes it when the pool is full.
    func release(_ channel: any Channel, for key: Key) {
        let isPooled = idle.withLock { idle in
            guard channel.isActive, idle.values.reduce(0, { $0 + $1.count }) < Self.idleMax else { return false }
            idle[key, default: []].append(channel)
            return true
        }
        if !isPooled { channel.close(promise: nil) }
    }

    /// Opens a connection and completes its TLS handshake.
    func connect(_ key: Key, by deadline: NIODeadline) async throws -> any Channel {
        let limit = min(deadline, .now() + TimeAmount(connectLimit))
        guard limit > .now() else { throw CalloutError.notInTime }
        let loop = group.next()
        let ready = loop.makePromise(of: Void.self)
        let timer = loop.scheduleTask(deadline: limit) { ready.fail(CalloutError.notInTime) }
        defer { timer.cancel() }
        if !key.isHTTPS { ready.succeed() }
        let (tls, bodyMax) = (key.isHTTPS ? tls : nil, bodyMax)
        do {
            let channel = try await ClientBootstrap(group: loop)
                .connectTimeout(limit - .now())
                .channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        let pipeline = channel.pipeline.syncOperations
                        if let tls {
                            let name = if case .name(let name) = key.host { name } else { String?.none }
                            try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: name))
                        }
                        try pipeline.addHandlers([
                            AnswerCap(bodyMax: bodyMax), HTTPRequestEncoder(),
                            ByteToMessageHandler(HTTPResponseDecoder()),
                            IdleStateHandler(allTimeout: Self.idleLimit),
                            ExchangeHandler(ready: tls == nil ? nil : ready, bodyMax: bodyMax),
                        ])
                    }
                }
                .connect(to: try SocketAddress(ipAddress: "\(key.address)", port: key.port)).get()
            channel.closeFuture.whenComplete { [weak self] _ in self?.remove(channel, key) }
            do {
                try await ready.futureResult.get()
            } catch {
                channel.close(promise: nil)
                throw error
            }
            return channel
        } catch {
            ready.fail(error)
            throw error
        }
    }

    /// Sends a request on a connection and waits for the response. Any failure closes the connection.
    func exchange(
        _ head: HTTPRequestHead, _ body: ByteBuffer, on channel: any Channel, by deadline: NIODeadline
    ) async throws -> TenantResponse {
        let promise = channel.eventLoop.makePromise(of: TenantResponse.self)
        let timer = channel.eventLoop.scheduleTask(deadline: deadline) {
            promise.fail(CalloutError.notInTime)
            channel.close(promise: nil)
        }
        defer { timer.cancel() }
        let written = channel.eventLoop.makePromise(of: Void.self)
        // A connection that was just closed does not deliver the request to its handler.
        written.futureResult.whenFailure { _ in promise.fail(CalloutError.closed) }
        channel.writeAndFlush(TenantRequest(head: head, body: body, promise: promise), promise: written)
        return try await promise.futureResult.get()
    }

    /// Closes the idle connections; no call may follow.
    func close() {
        let channels = idle.withLock { idle in
            defer { idle = [:] }
            return idle.values.joined()
        }
        for channel in channels { channel.close(promise: nil) }
    }

    private func remove(_ channel: any Channel, _ key: Key) {
        idle.withLock { idle in
            idle[key]?.removeAll { $0 === channel }
            if idle[key]?.isEmpty == true { idle[key] = nil }
        }
    }
}

/// Closes a connection that receives more bytes than a response can have, for example endless heads, 1xx responses,
/// chunk extensions or trailers. It is in front of the HTTP decoder, which has other limits.
private final class AnswerCap: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// Maximum bytes of one response on the wire.
    private let bytesMax: Int
    private var bytes = 0

    /// - Parameter bodyMax: maximum bytes of a response body. Head and framing may have as many bytes again.
    init(bodyMax: Int) { bytesMax = 2 * bodyMax }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        bytes = 0
        context.write(data, promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        bytes += unwrapInboundIn(data).readableBytes
        guard bytes <= bytesMax else {
            context.fireErrorCaught(CalloutError.tooLong)
            return context.close(promise: nil)
        }
        context.fireChannelRead(data)
    }
}
