import DeviceProtocol
import NIOCore
import NIOEmbedded
import SyncModel
import Synchronization
import Testing

@testable import Gateway

/// Events for many sessions at one time, and the writes of one session in one turn.
@Suite("Turns of the gateway's event loops")
struct GatewayTurnTests {
    @Test("recorded reports leave in one write: with the next data, or after a time")
    func recorded() throws {
        let bench = try HandlerBench([SessionBench.configuration("B")])
        try bench.open([])
        bench.recorded([3, 1])
        bench.recorded([2])
        #expect(try bench.writes().isEmpty)
        bench.flushRecorded()
        let writes = try bench.writes()
        #expect(writes.count == 1)
        #expect(writes.flatMap { $0 }.map(\.confirmRecorded.reportID) == [3, 1, 2])
        bench.recorded([4])
        bench.receive { $0.ping.number = 7 }
        let next = try bench.writes()
        #expect(next.map(\.count) == [2] && next[0][0].pong.number == 7 && next[0][1].confirmRecorded.reportID == 4)
        bench.flushRecorded()
        #expect(try bench.writes().isEmpty)
    }

    @Test("each event loop gets its own elements in one turn, in their order")
    func loops() {
        let loops = [EmbeddedEventLoop(), EmbeddedEventLoop()]
        let parts = Mutex<[[Int]]>([])
        func loop(of number: Int) -> any EventLoop { loops[number % 3 == 0 ? 1 : 0] }
        EventLoopBatch.execute(Array(0..<7), on: loop(of:)) { part in parts.withLock { $0.append(part) } }
        #expect(parts.withLock { $0 } == [])
        for loop in loops { loop.run() }
        #expect(parts.withLock { $0 } == [[1, 2, 4, 5], [0, 3, 6]])
    }

    @Test("a broadcast notifies its sessions one group after the other")
    func pace() async throws {
        let session = try HandlerBench([]).session
        let told = AsyncStream.makeStream(of: Int.self)
        let gate = AsyncStream.makeStream(of: Void.self)
        let open = Mutex(false)
        @Sendable func notify(_ sessions: [SessionHandle], _: ChannelNotice) async {
            #expect(!open.withLock { $0 })
            open.withLock { $0 = true }
            told.continuation.yield(sessions.count)
            var gate = gate.stream.makeAsyncIterator()
            await gate.next()
            open.withLock { $0 = false }
        }
        let pacer = GlobalPushThrottle(
            sessionsPerSecond: 100_000, sessions: { _ in Array(repeating: session, count: 700) }, notify: notify)
        let everybody = TargetAddress(instanceID: InstanceID("i"), kind: .globalDevice, target: "")
        let address = ChannelAddress(target: everybody, bizType: BizType("G"))
        pacer.add(ChannelNotice(channelID: 1, address: address, head: OplogID(1)))
        await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await pacer.run() }
            var counts: [Int] = []
            for await count in told.stream {
                counts.append(count)
                if counts.reduce(0, +) == 700 { break }
                gate.continuation.yield()
            }
            #expect(counts == [500, 200])
            gate.continuation.finish()
            group.cancelAll()
        }
    }
}
