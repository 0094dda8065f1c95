import NIOCore
import NIOPosix
import Synchronization
import TestSupport
import Testing

@testable import Torture

/// Each network fault of the fault proxy, on real sockets with an echo server.
struct FaultProxyTests {
    private final class Echo: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.writeAndFlush(data, promise: nil) }
    }

    /// Collects the data that a client receives.
    private final class Client: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        struct State {
            var bytes = ""
            var reads = 0
            var isEnded = false
        }

        let state = Mutex(State())

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            state.withLock {
                $0.bytes += String(buffer: unwrapInboundIn(data))
                $0.reads += 1
            }
        }

        func channelInactive(context: ChannelHandlerContext) { state.withLock { $0.isEnded = true } }
        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

        var bytes: String { state.withLock { $0.bytes } }
        var isEnded: Bool { state.withLock { $0.isEnded } }
    }

    private struct Connection {
        let channel: any Channel
        let client: Client

        func send(_ text: String) { channel.writeAndFlush(ByteBuffer(string: text), promise: nil) }
    }

    private let group = MultiThreadedEventLoopGroup.singleton

    private func withProxy(_ body: (FaultProxy) async throws -> Void) async throws {
        try await withProxies { proxy, _ in try await body(proxy) }
    }

    /// Two proxies before the same server.
    private func withProxies(_ body: (FaultProxy, FaultProxy) async throws -> Void) async throws {
        let server = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Echo()) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = server.localAddress?.port ?? 0
        let proxy = try await FaultProxy.start("client to echo", before: port)
        let other = try await FaultProxy.start("another to echo", before: port)
        do {
            try await body(proxy, other)
        } catch {
            await proxy.stop()
            throw error
        }
        await proxy.stop()
        await other.stop()
        try await server.close()
    }

    private func connect(_ proxy: FaultProxy) async throws -> Connection {
        let client = Client()
        let channel = try await ClientBootstrap(group: group)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(client) }
            }
            .connect(host: "127.0.0.1", port: proxy.port).get()
        return Connection(channel: channel, client: client)
    }

    private func expect(_ text: String, at connection: Connection) async throws {
        try await eventually("\(text) comes back, not \(connection.client.bytes)", within: .seconds(5)) {
            connection.client.bytes == text
        }
    }

    @Test("Without a fault everything passes, and an end too")
    func passes() async throws {
        try await withProxy { proxy in
            let connection = try await connect(proxy)
            connection.send("one")
            try await expect("one", at: connection)
            try await connection.channel.close()
        }
    }

    @Test("A cut resets existing and new connections until it is healed")
    func cut() async throws {
        try await withProxy { proxy in
            let connection = try await connect(proxy)
            connection.send("one")
            try await expect("one", at: connection)
            proxy.set(.cut)
            try await eventually("the connection ends", within: .seconds(5)) { connection.client.isEnded }
            let refused = try? await connect(proxy)
            try await eventually("a new one ends", within: .seconds(5)) { refused?.client.isEnded ?? true }
            proxy.set(nil)
            let again = try await connect(proxy)
            again.send("two")
            try await expect("two", at: again)
        }
    }

    @Test("Silenced data arrives in order after healing", arguments: EdgeFault.Direction.allCases)
    func silence(direction: EdgeFault.Direction) async throws {
        try await withProxies { proxy, other in
            let connection = try await connect(proxy)
            connection.send("a")
            try await expect("a", at: connection)
            proxy.set(.silence([direction]))
            connection.send("b")
            connection.send("c")
            // Data through the other proxy is answered meanwhile.
            let witness = try await connect(other)
            for count in 1...5 {
                witness.send("x")
                try await expect(String(repeating: "x", count: count), at: witness)
            }
            #expect(connection.client.bytes == "a")
            proxy.set(nil)
            try await expect("abc", at: connection)
        }
    }

    @Test("A delay keeps the order")
    func delay() async throws {
        try await withProxy { proxy in
            let connection = try await connect(proxy)
            proxy.set(.delay(milliseconds: 30))
            for letter in ["a", "b", "c"] { connection.send(letter) }
            try await expect("abc", at: connection)
            proxy.set(nil)
            connection.send("d")
            try await expect("abcd", at: connection)
        }
    }

    @Test("Fragments are many and lose nothing")
    func fragments() async throws {
        try await withProxy { proxy in
            let connection = try await connect(proxy)
            proxy.set(.fragments)
            let text = String(repeating: "0123456789", count: 100)
            connection.send(text)
            try await expect(text, at: connection)
        }
    }

    @Test("A truncated connection passes half of its data and ends")
    func truncation() async throws {
        try await withProxy { proxy in
            let connection = try await connect(proxy)
            proxy.set(.truncation)
            connection.send("0123456789")
            try await eventually("the connection ends", within: .seconds(5)) { connection.client.isEnded }
            #expect(connection.client.bytes.utf8.count < 10)
        }
    }
}
