import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

private typealias Bench = SessionBench

/// What was handed out is written at the end of a turn, or with the pages of other channels; much may happen before.
@Suite("Batches that wait to be written") struct GatheredBatchTests {
    /// A page that never expires.
    private static func page(after: Int64 = 0, _ ids: [Int64]) -> Mss_Bus_V1_FetchReply {
        var page = Bench.page(after: after, ids: ids)
        for index in page.entries.indices { page.entries[index].validUntilMs = 4_000_000_000_000 }
        return page
    }

    /// A session with channels 3 (Sync ID B), a page of which waits to be written, and 4 (C), whose page is to come.
    private static func waiting() throws -> HandlerBench {
        let bench = try HandlerBench([Bench.configuration("B"), Bench.configuration("C")])
        try bench.open([("B", 3, 1, 0), ("C", 4, 1, 0)])
        bench.happen(.fetched(page([1]), channelID: 3))
        #expect(try bench.pushed().isEmpty)
        return bench
    }

    @Test("a page waits for the end of the turn and then goes out") func goesOut() throws {
        let bench = try Self.waiting()
        bench.turn()
        #expect(try bench.pushed() == [1])
    }

    @Test("D16: what waits for one user is not written once another is bound")
    func otherUser() throws {
        let bench = try Self.waiting()
        bench.receive {
            $0.bind.bindNumber = 2
            $0.bind.userID = "v"
        }
        bench.turn()
        #expect(try bench.pushed().isEmpty)
    }

    @Test("D17: what waits while its configuration goes offline stays, and goes out when it is online again")
    func goesOffline() throws {
        let bench = try Self.waiting()
        var offline = Bench.configuration("B")
        offline.isOnline = false
        bench.rule([offline])
        bench.turn()
        #expect(try bench.pushed().isEmpty)
        bench.rule([Bench.configuration("B")])
        bench.happen(.surroundingsChanged)
        bench.happen(.fetched(Self.page([1]), channelID: 3))
        bench.turn()
        #expect(try bench.pushed() == [1])
    }

    @Test("V6, I7: what waits while its check is turned on goes out with a verdict, and not before")
    func checkTurnedOn() throws {
        let bench = try Self.waiting()
        bench.rule([Bench.configuration("B", checks: true)])
        bench.receive { $0.ping.number = 1 }
        bench.turn()
        #expect(try bench.pushed().isEmpty)
        bench.happen(.validated(.with { $0.verdict = .valid }, bindNumber: 1, askedAt: .now))
        bench.happen(.fetched(Self.page([1]), channelID: 3))
        #expect(try bench.pushed() == [1])
    }

    @Test("D11: what ends while it waits is left out, and the position moves all the same") func ends() {
        let batch = Mss_Device_V1_ChannelBatch.with {
            $0.upto = 2
            $0.entries = [Int64(1), 2].map { id in
                .with {
                    $0.oplogID = id
                    $0.validUntilMs = id * 1_000
                }
            }
        }
        let waiting = GatheredBatch(batch: batch, oplogs: [OplogID(1), OplogID(2)], channelID: 3)
        let (left, expired) = waiting.withoutExpired(at: WallTime(milliseconds: 1_000))
        #expect(expired == [OplogID(1)])
        #expect(left.oplogs == [OplogID(2)])
        #expect(left.batch.entries.map(\.oplogID) == [2])
        #expect(left.batch.upto == 2)
    }

    @Test("fencing: what waits when the lease ends is not written") func leaseEnds() throws {
        let bench = try Self.waiting()
        bench.lease.take(.with { $0.epoch = 1 }, askedAt: .now - .seconds(60))
        bench.turn()
        #expect(try bench.pushed().isEmpty)
    }

    // MARK: The session

    @Test("a batch that is taken back frees the window, is read from where it began, and goes out the same")
    func takenBack() {
        var bench = Bench()
        let opened = bench.open([("B", 3, 4, 2)])
        #expect(opened.fetches.map(\.after) == [2])
        let sent = bench.machine.fetched(Bench.page(after: 2, ids: [3, 4]), channelID: 3, in: bench.world)
        let live = Bench.notice("B", channel: 3, after: 4, ids: [5], persistent: false)
        let more = bench.machine.noticed(live, in: bench.world)
        #expect(sent.pushed == [3, 4] && more.pushed == [5] && bench.machine.windowUsed == 3)
        bench.configurations[BizType("B")]?.isOnline = false
        let back = bench.machine.reconsider((sent + more).gathered, in: bench.world)
        #expect(back.waiting.isEmpty && bench.machine.windowUsed == 0)
        bench.configurations[BizType("B")]?.isOnline = true
        let again = bench.machine.surroundingsChanged(in: bench.world)
        #expect(again.fetches.map(\.after) == [2])
        var page = Bench.page(after: 2, ids: [3, 4])
        page.upto = 5
        let resent = bench.machine.fetched(page, channelID: 3, in: bench.world)
        #expect(resent.pushed == [3, 4, 5], "what is stored nowhere waited here")
        #expect(resent.batches.map(\.after) == sent.batches.map(\.after))
    }

    @Test("what was written is not taken back; an acknowledgement that came meanwhile stays")
    func writtenStays() {
        var bench = Bench()
        bench.open([("B", 3, 0, 0)])
        let first = bench.machine.noticed(Bench.notice("B", channel: 3, after: 0, ids: [1]), in: bench.world)
        bench.machine.written(first.gathered, at: bench.now)
        let second = bench.machine.noticed(Bench.notice("B", channel: 3, after: 1, ids: [2]), in: bench.world)
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
        #expect(bench.machine.reconsider(second.gathered, in: bench.world).waiting.isEmpty)
        #expect(bench.machine.windowUsed == 0)
        bench.holdsLease = true
        #expect(bench.machine.surroundingsChanged(in: bench.world).fetches.map(\.after) == [1])
    }

    @Test("a threshold that was at work on what is taken back is at work when it is read again")
    func threshold() {
        var bench = Bench([Bench.configuration("B", repush: .threshold(1))])
        #expect(bench.open([("B", 3, 2, 0)]).fetches.map(\.newest) == [1])
        var page = Bench.page(after: 0, ids: [2])
        page.discardedUpto = 1
        let sent = bench.machine.fetched(page, channelID: 3, in: bench.world)
        bench.holdsLease = false
        _ = bench.machine.reconsider(sent.gathered, in: bench.world)
        bench.holdsLease = true
        let again = bench.machine.surroundingsChanged(in: bench.world).fetches
        #expect(again.map(\.newest) == [1] && again.map(\.after) == [0])
    }

    @Test("a re-read that is taken back is asked for again") func reread() {
        var bench = Bench()
        bench.open()
        _ = bench.machine.announce(in: bench.world)
        var reply = Bench.reply([("B", 3, 2, 2)])
        reply.rereads = [
            .with {
                $0.rereadID = 8
                $0.channelID = 3
                $0.oplog = Bench.oplog(1).bus
            }
        ]
        let sent = bench.machine.registered(reply, bindNumber: 1, in: bench.world)
        #expect(sent.pushed == [1])
        bench.configurations[BizType("B")]?.isOnline = false
        let back = bench.machine.reconsider(sent.gathered, in: bench.world)
        #expect(back.waiting.isEmpty && back.actions.opens == 1)
        bench.configurations[BizType("B")]?.isOnline = true
        #expect(bench.machine.registered(reply, bindNumber: 1, in: bench.world).pushed == [1])
    }
}

extension [SessionAction] {
    /// The batches among them, as a connection keeps them.
    var gathered: [GatheredBatch] {
        compactMap { action in
            guard case .push(let batch, let oplogs, let channelID) = action else { return nil }
            return GatheredBatch(batch: batch, oplogs: oplogs, channelID: channelID)
        }
    }
}
