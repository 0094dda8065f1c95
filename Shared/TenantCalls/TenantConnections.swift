import NIOCore
import NIOHTTP1
import NIOPosix
package import NIOSSL
import ServiceKit
import SyncModel
import Synchronization

/// Connections to tenants' endpoints, each to one address that was checked; kept for the next question of the same
/// tenant and host at the same address.
///
/// The address is pinned: nothing here resolves a name. TLS and the Host field go by the URL's host.
package final class TenantConnections: Sendable {
    /// What a connection is good for. Tenants do not share one, also where they share a host: what one of them leaves
    /// behind on it must not become an answer about another's session.
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

    /// How long a connection waits for its next question; less than most servers wait for one.
    private static let idleLimit = TimeAmount.seconds(15)
    /// Connections that wait for questions, of all tenants; further ones are closed.
    private static let idleMax = 256
    /// What this process has open beside calls: the broker, health, event loops, lookups.
    private static let otherFiles = 256

    /// Calls under way of all tenants at the most, so that none fails for want of a descriptor.
    ///
    /// - Parameter openFiles: how many this process may have open.
    package static func callsMax(openFiles: Int) -> Int { max(64, min(4_096, openFiles - idleMax - otherFiles)) }

    private let group: any EventLoopGroup = MultiThreadedEventLoopGroup.singleton
    private let tls: NIOSSLContext
    /// To connect and to shake hands.
    private let connectLimit: Duration
    /// Bytes of an answer's body.
    private let bodyMax: Int
    private let idle = Mutex<[Key: [any Channel]]>([:])

    /// - Parameters:
    ///   - connectLimit: to connect and to shake hands.
    ///   - bodyMax: bytes of an answer's body.
    ///   - authorityFile: PEM of the authorities that sign tenants' certificates; nil: the system's.
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

    /// The certificates of a PEM file.
    ///
    /// - Throws: when it cannot be read, or has none.
    package static func authorities(_ file: String) throws -> [NIOSSLCertificate] {
        let found = try NIOSSLCertificate.fromPEMFile(file)
        guard !found.isEmpty else { throw NIOSSLError.failedToLoadCertificate }
        return found
    }

    /// Where callers put what waits for a future.
    var loop: any EventLoop { group.any() }

    /// A connection that waits for a question, the one used last.
    func waiting(_ key: Key) -> (any Channel)? {
        idle.withLock { idle in
            while let channel = idle[key]?.popLast() { if channel.isActive { return channel } }
            idle[key] = nil
            return nil
        }
    }

    /// Keeps a connection for the next question.
    func keep(_ channel: any Channel, for key: Key) {
        let isKept = idle.withLock { idle in
            guard channel.isActive, idle.values.reduce(0, { $0 + $1.count }) < Self.idleMax else { return false }
            idle[key, default: []].append(channel)
            return true
        }
        if !isKept { channel.close(promise: nil) }
    }

    /// A new connection, its TLS handshake done.
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
            channel.closeFuture.whenComplete { [weak self] _ in self?.forget(channel, key) }
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

    /// Puts a question on a connection; whatever fails ends the connection.
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
        // A connection that has just gone does not take the question to its handler.
        written.futureResult.whenFailure { _ in promise.fail(CalloutError.closed) }
        channel.writeAndFlush(TenantRequest(head: head, body: body, promise: promise), promise: written)
        return try await promise.futureResult.get()
    }

    /// Ends those that wait; nothing may be asked afterwards.
    func close() {
        let channels = idle.withLock { idle in
            defer { idle = [:] }
            return idle.values.joined()
        }
        for channel in channels { channel.close(promise: nil) }
    }

    private func forget(_ channel: any Channel, _ key: Key) {
        idle.withLock { idle in
            idle[key]?.removeAll { $0 === channel }
            if idle[key]?.isEmpty == true { idle[key] = nil }
        }
    }
}
