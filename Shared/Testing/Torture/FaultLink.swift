import Glibc
import NIOCore
import NIOPosix

/// One connection through a fault proxy. Both ends are on one event loop.
// Unchecked: only the event loop uses the state. The two channels are immutable.
final class FaultLink: @unchecked Sendable {
    private let client: any Channel
    private let server: any Channel
    private let state: FaultProxy.Shared
    private let serverProtocol: FaultProxy.ServerProtocol

    init(client: any Channel, server: any Channel, state: FaultProxy.Shared, serverProtocol: FaultProxy.ServerProtocol)
    {
        self.client = client
        self.server = server
        self.state = state
        self.serverProtocol = serverProtocol
    }

    /// Adds the relays to both pipelines. Call it on the event loop.
    func install() throws {
        state.add(self)
        let up = Relay(.up, to: server, self)
        let down = Relay(.down, to: client, self)
        relays = [up, down]
        try client.pipeline.syncOperations.addHandler(up)
        try server.pipeline.syncOperations.addHandler(down)
    }

    private var relays: [Relay] = []

    /// Applies a changed fault of the proxy. A nil value ends the fault.
    func faultChanged(_ fault: EdgeFault?) {
        if fault == .cut { return reset() }
        client.eventLoop.execute { [self] in for relay in relays { relay.faultChanged() } }
    }

    /// Resets both connections, as a network does that has lost their state.
    func reset() {
        for channel in [client, server] {
            // With a linger time of zero, close(2) sends a reset.
            let isSet = (channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
            guard let isSet else { return channel.close(promise: nil) }
            isSet.whenComplete { _ in channel.close(promise: nil) }
        }
    }

    /// Forwards one direction.
    private final class Relay: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer

        /// A received part that is not forwarded yet.
        private enum Piece {
            case bytes(ByteBuffer)
            case end
        }

        /// Reading stops at this number of held bytes.
        private static let mostHeldBytes = 1 << 20
        /// One in this many deliveries is repeated.
        private static let repeatEvery = 8

        private let direction: EdgeFault.Direction
        private let peer: any Channel
        private let link: FaultLink
        private var held = CircularBuffer<(due: NIODeadline, piece: Piece)>()
        private var heldBytes = 0
        private var deliveries = AMQPDeliveries()
        private var deliveryCount = 0
        private var hasTruncated = false

        init(_ direction: EdgeFault.Direction, to peer: any Channel, _ link: FaultLink) {
            self.direction = direction
            self.peer = peer
            self.link = link
        }

        private var channel: any Channel { direction == .up ? link.client : link.server }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            var buffer = unwrapInboundIn(data)
            let fault = link.state.fault
            if link.serverProtocol == .amqp, direction == .down {
                var repeated = ByteBuffer()
                buffer = deliveries.append(buffer) { frames in
                    deliveryCount += 1
                    guard fault == .repeatedDeliveries, deliveryCount.isMultiple(of: Self.repeatEvery) else { return }
                    repeated.writeImmutableBuffer(frames)
                }
                buffer.writeImmutableBuffer(repeated)
                if buffer.readableBytes == 0 { return }
            }
            switch fault {
            case .truncation where !hasTruncated:
                hasTruncated = true
                if let half = buffer.readSlice(length: buffer.readableBytes / 2) {
                    peer.writeAndFlush(half, promise: nil)
                }
                link.reset()
            default: pass(.bytes(buffer), fault)
            }
        }

        func channelInactive(context: ChannelHandlerContext) { pass(.end, link.state.fault) }

        func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

        /// Resumes reading when the other side can be written again.
        func channelWritabilityChanged(context: ChannelHandlerContext) {
            guard context.channel.isWritable else { return }
            for relay in link.relays where relay !== self { relay.resume() }
        }

        /// Forwards held parts, except those that the new fault holds.
        func faultChanged() {
            let fault = link.state.fault
            let pieces = held
            held.removeAll()
            heldBytes = 0
            for (_, piece) in pieces { pass(piece, fault) }
            resume()
        }

        private func resume() {
            guard heldBytes < Self.mostHeldBytes, peer.isWritable else { return }
            channel.setOption(.autoRead, value: true).whenFailure { _ in }
        }

        private func pass(_ piece: Piece, _ fault: EdgeFault?) {
            switch fault {
            case .silence(let directions) where directions.contains(direction): hold(piece, until: .distantFuture)
            case .delay(let milliseconds):
                hold(piece, until: .now() + .milliseconds(milliseconds))
                let bound = NIOLoopBound(self, eventLoop: peer.eventLoop)
                peer.eventLoop.scheduleTask(in: .milliseconds(milliseconds)) { bound.value.sendDue() }
            default:
                // Keeps the order: a part does not overtake a held part.
                if held.isEmpty { send(piece, fault) } else { hold(piece, until: .now()) }
            }
        }

        private func hold(_ piece: Piece, until due: NIODeadline) {
            held.append((due, piece))
            if case .bytes(let buffer) = piece { heldBytes += buffer.readableBytes }
            if heldBytes >= Self.mostHeldBytes { channel.setOption(.autoRead, value: false).whenFailure { _ in } }
        }

        private func sendDue() {
            while let first = held.first, first.due <= .now() {
                held.removeFirst()
                if case .bytes(let buffer) = first.piece { heldBytes -= buffer.readableBytes }
                send(first.piece, link.state.fault)
            }
            resume()
        }

        private func send(_ piece: Piece, _ fault: EdgeFault?) {
            guard case .bytes(var buffer) = piece else {
                link.state.remove(link)
                // The peer closes after the earlier writes.
                return peer.writeAndFlush(ByteBuffer()).whenComplete { [peer] _ in peer.close(promise: nil) }
            }
            if fault == .fragments {
                while buffer.readableBytes > 0 {
                    guard let piece = buffer.readSlice(length: min(buffer.readableBytes, .random(in: 1...9))) else {
                        break
                    }
                    peer.writeAndFlush(piece, promise: nil)
                }
            } else {
                peer.writeAndFlush(buffer, promise: nil)
            }
            if !peer.isWritable { channel.setOption(.autoRead, value: false).whenFailure { _ in } }
        }
    }
}
