import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway
@testable import ServiceKit

private typealias Bench = SessionBench

/// Batches are written at the end of a turn, or with the pages of other channels. Many events can happen before.
@Suite("Batches that wait to be written") struct OutboundBatchTests {
    /// A page with oplogs that do not expire.
    private static func page(after: Int64 = 0, _ ids: [Int64]) -> Mss_Bus_V1_FetchReply {
        var page = Bench.page(after: after, ids: ids)
        for index in page.entries.indices { page.entries[index].validUntilMs = 4_000_000_000_000 }
        return page
    }

    /// A session with channel 3 (Sync ID B), of which a page waits to be written, and channel 4 (C), whose page is
    /// requested.
    private static func waiting(clock: ProcessClock = .system) throws -> HandlerBench {
        let bench = try HandlerBench([Bench.configuration("B"), Bench.configuration("C")], clock: clock)
        try bench.open([("B", 3, 1, 0), ("C", 4, 1, 0)])
        bench.handle(.fetched(page([1]), channelID: 3))
        #expect(try bench.pushed().isEmpty)
        return bench
    }

    @Test("a page waits for the end of the turn and is then written") func goesOut() throws {
        let bench = try Self.waiting()
        bench.turn()
        #expect(try bench.pushed() == [1])
    }

    @Test("D16: data that waits for one user is not written after another user is bound")
    func otherUser() throws {
        let bench = try Self.waiting()
        bench.receive {
            $0.bind.bindNumber = 2
            $0.bind.userID = "v"
        }
        bench.turn()
        #expect(try bench.pushed().isEmpty)
    }

    @Test("D17: waiting data of a configuration that goes offline is sent when it is online again")
    func goesOffline() throws {
        let bench = try Self.waiting()
        var offline = Bench.configuration("B")
        offline.isOnline = false
        bench.setConfigurations([offline])
        bench.turn()
        #expect(try bench.pushed().isEmpty)
        bench.setConfigurations([Bench.configuration("B")])
        bench.handle(.contextChanged)
        bench.handle(.fetched(Self.page([1]), channelID: 3))
        bench.turn()
        #expect(try bench.pushed() == [1])
    }

    @Test("V6, I7: data that waits when the session check is switched on is sent only with a verdict")
    func checkTurnedOn() throws {
        let bench = try Self.waiting()
        bench.setConfigurations([Bench.configuration("B", checks: true)])
        bench.receive { $0.ping.number = 1 }
        bench.turn()
        #expect(try bench.pushed().isEmpty)
        bench.handle(.validated(.with { $0.verdict = .valid }, bindNumber: 1, askedAt: .now))
        bench.handle(.fetched(Self.page([1]), channelID: 3))
        #expect(try bench.pushed() == [1])
    }

    @Test("D11: an oplog that expires while it waits is left out, and the position still rises") func ends() {
        let batch = Mss_Device_V1_ChannelBatch.with {
            $0.upto = 2
            $0.entries = [Int64(1), 2].map { id in
                .with {
                    $0.oplogID = id
                    $0.validUntilMs = id * 1_000
                }
            }
        }
        let waiting = OutboundBatch(batch: batch, oplogs: [OplogID(1), OplogID(2)], channelID: 3)
        let (left, expired) = waiting.withoutExpired(at: WallTime(milliseconds: 1_000))
        #expect(expired == [OplogID(1)])
        #expect(left.oplogs == [OplogID(2)])
        #expect(left.batch.entries.map(\.oplogID) == [2])
        #expect(left.batch.upto == 2)
    }

    @Test("fencing: data that waits when the lease ends is not written") func leaseEnds() throws {
        let time = SteppedClock()
        let bench = try Self.waiting(clock: time.clock)
        time.set(.seconds(7_200))
        bench.turn()
        #expect(try bench.pushed().isEmpty)
    }

    @Test("D5: a page that waits for another one leaves with the first tick after the longest wait")
    func longestWait() throws {
        let time = SteppedClock()
        let bench = try HandlerBench(
            [Bench.configuration("B"), Bench.configuration("C")], over: BusRecorder(), clock: time.clock)
        try bench.open([("B", 3, 1, 0), ("C", 4, 1, 0)])
        bench.handle(.fetched(Self.page([1]), channelID: 3))
        bench.tick()
        #expect(try bench.pushed().isEmpty)
        time.set(.seconds(1))
        bench.tick()
        #expect(try bench.pushed() == [1])
    }

    // MARK: The session

    @Test("a withdrawn batch frees the window and is read again from its beginning")
    func takenBack() {
        var bench = Bench()
        let opened = bench.open([("B", 3, 4, 2)])
        #expect(opened.fetches.map(\.after) == [2])
        let sent = bench.handle(.fetched(Bench.page(after: 2, ids: [3, 4]), channelID: 3))
        let live = Bench.notice("B", channel: 3, after: 4, ids: [5], persistent: false)
        let more = bench.handle(.noticed(live))
        #expect(sent.pushed == [3, 4] && more.pushed == [5] && bench.machine.windowUsed == 3)
        bench.configurations[BizType("B")]?.isOnline = false
        let back = bench.machine.recheck((sent + more).gathered, in: bench.context)
        #expect(back.waiting.isEmpty && bench.machine.windowUsed == 0)
        bench.configurations[BizType("B")]?.isOnline = true
        let again = bench.handle(.contextChanged)
        #expect(again.fetches.map(\.after) == [2])
        var page = Bench.page(after: 2, ids: [3, 4])
        page.upto = 5
        let resent = bench.handle(.fetched(page, channelID: 3))
        #expect(resent.pushed == [3, 4, 5], "what is stored nowhere waited here")
        #expect(resent.batches.map(\.after) == sent.batches.map(\.after))
    }

    @Test("a written batch is not withdrawn; an acknowledgement that arrived meanwhile stays")
    func writtenStays() {
        var bench = Bench()
        bench.open([("B", 3, 0, 0)])
        let first = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 0, ids: [1])))
        bench.machine.recordWritten(first.gathered, at: bench.now)
        let second = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 1, ids: [2])))
        let acknowledged = bench.receive {
            $0.storedAck.channels = [
                .with {
                    $0.kind = .user
                    $0.bizType = "B"
                    $0.upto = 1
                    $0.bindNumber = 1
                }
            ]
        }
        #expect(acknowledged.recorded == [1])
        bench.holdsLease = false
        #expect(bench.machine.recheck(second.gathered, in: bench.context).waiting.isEmpty)
        #expect(bench.machine.windowUsed == 0)
        bench.holdsLease = true
        #expect(bench.handle(.contextChanged).fetches.map(\.after) == [1])
    }

    @Test("the threshold of a withdrawn batch applies again when the batch is read again")
    func threshold() {
        var bench = Bench([Bench.configuration("B", repush: .threshold(1))])
        #expect(bench.open([("B", 3, 2, 0)]).fetches.map(\.newest) == [1])
        var page = Bench.page(after: 0, ids: [2])
        page.discardedUpto = 1
        let sent = bench.handle(.fetched(page, channelID: 3))
        bench.holdsLease = false
        _ = bench.machine.recheck(sent.gathered, in: bench.context)
        bench.holdsLease = true
        let again = bench.handle(.contextChanged).fetches
        #expect(again.map(\.newest) == [1] && again.map(\.after) == [0])
    }

    @Test("a withdrawn re-read is requested again") func reread() {
        var bench = Bench()
        bench.open()
        _ = bench.handle(.registrationDue)
        var reply = Bench.reply([("B", 3, 2, 2)])
        reply.rereads = [
            .with {
                $0.rereadID = 8
                $0.channelID = 3
                $0.oplog = Bench.oplog(1).bus
            }
        ]
        let sent = bench.handle(.registered(reply, bindNumber: 1))
        #expect(sent.pushed == [1])
        bench.configurations[BizType("B")]?.isOnline = false
        let back = bench.machine.recheck(sent.gathered, in: bench.context)
        #expect(back.waiting.isEmpty && back.actions.opens == 1)
        bench.configurations[BizType("B")]?.isOnline = true
        #expect(bench.handle(.registered(reply, bindNumber: 1)).pushed == [1])
    }
}

extension [SessionAction] {
    /// The batches of the actions, as a connection keeps them.
    var gathered: [OutboundBatch] {
        compactMap { action in
            guard case .push(let batch, let oplogs, let channelID) = action else { return nil }
            return OutboundBatch(batch: batch, oplogs: oplogs, channelID: channelID)
        }
    }
}
