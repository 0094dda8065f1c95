import BusMessages
import DeliveryHistory
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import TestSupport
import Testing

@testable import Gateway

private typealias Bench = SessionBench

/// Suspended Sync IDs, heartbeat intervals, and the ranges that a device was not sent.
@Suite("Gateway: subscriptions, intervals, discarded ranges")
struct SessionSubscriptionTests {
    private static func suspend(_ bizTypes: [String], on bench: inout Bench) -> [SessionAction] {
        bench.receive { $0.subscriptions.suspended = bizTypes }
    }

    @Test("Subscriptions before Connect, and lists of more than 200, end the connection; 200 are taken")
    func limits() {
        var bench = Bench()
        #expect(Self.suspend([], on: &bench).closeCode == .protocolViolation)
        let many = (0..<200).map { "b\($0)" }
        bench = Bench()
        bench.open { $0.suspended = many }
        #expect(bench.machine.identity?.subscriptions.suspended.count == 200)
        #expect(Self.suspend(many + ["one more"], on: &bench).closeCode == .protocolViolation)
        bench = Bench()
        let refused = bench.receive {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "i"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
            $0.connect.suspended = many + ["one more"]
        }
        #expect(refused.closeCode == .protocolViolation && refused.opens == 0)
    }

    @Test("impossible Sync IDs are left out, and the others are stored")
    func names() {
        var bench = Bench()
        bench.open()
        let long = String(repeating: "x", count: 31)
        let actions = Self.suspend(["A", long, "a\u{0}b", String(long.dropLast())], on: &bench)
        let expected: Set = [BizType("A"), BizType(String(long.dropLast()))]
        #expect(actions.announced.map(\.subscriptions.suspended) == [expected])
        _ = bench.handle(.registered(Bench.reply([]), bindNumber: 1))
        #expect(Self.suspend([String(long.dropLast()), "A", "A"], on: &bench).isEmpty, "the same list")
    }

    @Test("suspended from the first frame: no data is sent, CaughtUp does not wait; resumed, it is read")
    func suspendedAtConnect() {
        var bench = Bench([Bench.configuration("B"), Bench.configuration("C")])
        let opened = bench.open([("B", 3, 10, 4), ("C", 4, 10, 10)]) { $0.suspended = ["B"] }
        #expect(opened.fetches.isEmpty && opened.isCaughtUp)
        #expect(
            bench.handle(.noticed(Bench.notice("B", channel: 3, after: 10, ids: [11]))).pushed.isEmpty
        )
        #expect(
            bench.handle(.noticed(Bench.notice("C", channel: 4, after: 10, ids: [11]))).pushed == [11]
        )
        let resumed = Self.suspend([], on: &bench)
        #expect(resumed.fetches.map(\.after) == [4] && resumed.announced.map(\.subscriptions.suspended) == [[]])
        #expect(
            bench.handle(.fetched(Bench.page(after: 4, ids: [5, 11]), channelID: 3)).pushed == [
                5, 11,
            ])
    }

    @Test("D10: pushes to a suspended Sync ID are a backlog, to which the threshold applies")
    func thresholdAfterwards() {
        var bench = Bench([Bench.configuration("B", repush: .threshold(10))])
        bench.open([("B", 3, 5, 5)])
        _ = Self.suspend(["B"], on: &bench)
        _ = bench.handle(.registered(Bench.reply([("B", 3, 5, 5)]), bindNumber: 1))
        _ = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 5, ids: [6])))
        _ = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 6, ids: Array(7...100))))
        #expect(Self.suspend([], on: &bench).fetches.map(\.newest) == [10])
    }

    @Test("D6: non-persistent pushes of a suspended Sync ID are refused")
    func liveDataIsNotTaken() {
        var bench = Bench()
        bench.open([("B", 3, 10, 10)]) { $0.suspended = ["B"] }
        let live = Bench.notice("B", channel: 3, after: 10, ids: [11], persistent: false)
        let actions = bench.handle(.noticed(live))
        #expect(actions.pushed.isEmpty && bench.replyEntries(of: live).held.isEmpty)
    }

    @Test("a page in flight is not sent after its Sync ID is suspended")
    func pagesOnTheirWay() {
        var bench = Bench()
        #expect(bench.open([("B", 3, 10, 4)]).fetches.count == 1)
        _ = Self.suspend(["B"], on: &bench)
        #expect(bench.handle(.fetched(Bench.page(after: 4, ids: [10]), channelID: 3)).pushed.isEmpty)
    }

    @Test("re-reads of a suspended Sync ID wait until it is resumed")
    func rereadsWait() {
        var bench = Bench()
        var reply = Bench.reply([("B", 3, 10, 10)])
        _ = bench.open { $0.suspended = ["B"] }
        reply.rereads = [
            .with {
                $0.rereadID = 1
                $0.channelID = 3
                $0.oplog = Bench.oplog(7).bus
            }
        ]
        #expect(bench.handle(.registered(reply, bindNumber: 1)).pushed.isEmpty)
        let batches = Self.suspend([], on: &bench).batches
        #expect(batches.map(\.reread) == [1] && batches.map(\.passedOverUpto) == [0])
    }

    @Test("a list that arrives during a registration is stored after it, also the last of several")
    func listsDuringARegistration() {
        var bench = Bench()
        _ = bench.receive {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "i"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
        }
        #expect(Self.suspend(["A"], on: &bench).isEmpty)
        #expect(Self.suspend(["B"], on: &bench).isEmpty)
        let answered = bench.handle(.registered(Bench.reply([]), bindNumber: 0))
        #expect(answered.announced.map(\.subscriptions.suspended) == [[BizType("B")]])
        #expect(bench.handle(.registered(Bench.reply([]), bindNumber: 0)).opens == 0)
        // A failed registration is repeated with the current list.
        _ = Self.suspend(["C"], on: &bench)
        _ = bench.handle(.registered(nil, bindNumber: 1))
        bench.now += .seconds(1)
        #expect(bench.handle(.ticked).announced.map(\.subscriptions.suspended) == [[BizType("C")]])
    }

    @Test(
        "random pushes, suspensions, requests and lost answers never reorder, repeat or lose an oplog",
        arguments: 0..<100)
    func randomEvents(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var bench = Bench()
        bench.open([("B", 3, 0, 0)])
        var (head, isSuspended) = (Int64(0), false)
        var (shown, pending, opens, reads) = ([Int64](), [Int64](), 0, [UInt64]())
        func perform(_ actions: [SessionAction]) {
            if isSuspended { #expect(actions.pushed.isEmpty, "seed \(seed)") }
            shown += actions.pushed
            pending += actions.fetches.map(\.after)
            opens += actions.opens
            reads += actions.historyReads.map(\.id)
        }
        func answerPage() {
            let after = pending.removeFirst()
            let ids = (after..<max(after, min(head, after + 3))).map { $0 + 1 }
            perform(bench.handle(.fetched(Bench.page(after: after, ids: ids), channelID: 3)))
        }
        func answerOpen() {
            opens -= 1
            perform(bench.handle(.registered(Bench.reply([("B", 3, head, 0)]), bindNumber: 1)))
        }
        func tick() {
            bench.now += .seconds(1)
            _ = bench.receive { $0.ping.number = 1 }
            perform(bench.handle(.ticked))
        }
        for _ in 0..<200 {
            switch Int.random(in: 0..<7, using: &generator) {
            case 0, 1:
                let step = Int64.random(in: 1...3, using: &generator)
                let notice = Bench.notice("B", channel: 3, after: head, ids: Array(head + 1...head + step))
                head += step
                if Bool.random(using: &generator) { perform(bench.handle(.noticed(notice))) }
            case 2:
                isSuspended.toggle()
                perform(Self.suspend(isSuspended ? ["B"] : [], on: &bench))
            case 3 where !pending.isEmpty: answerPage()
            case 4 where opens > 0:
                if Bool.random(using: &generator) {
                    answerOpen()
                } else {
                    opens -= 1
                    perform(bench.handle(.registered(nil, bindNumber: 1)))
                }
            case 5:
                perform(
                    bench.receive {
                        $0.historyRequest.bizType = "B"
                        $0.historyRequest.bindNumber = 1
                        $0.historyRequest.count = 1
                    })
                if !reads.isEmpty {
                    perform(bench.handle(.historyRead(nil, of: reads.removeFirst())))
                }
            default: tick()
            }
        }
        // Heal: the Sync ID is resumed, the sweep reports the head, and all requests are answered.
        isSuspended = false
        perform(Self.suspend([], on: &bench))
        perform(bench.handle(.noticed(Bench.notice("B", channel: 3, after: head, ids: []))))
        for _ in 0..<1_000 {
            if opens > 0 { answerOpen() }
            if !pending.isEmpty { answerPage() }
            tick()
        }
        #expect(shown == (0..<head).map { $0 + 1 }, "seed \(seed)")
        #expect(bench.machine.identity?.subscriptions.suspended == [])
    }

    // MARK: Intervals

    @Test("a ping names the interval, from 1 s to the bound; the connection is dead after two and a half of it")
    func intervals() {
        func lives(_ intervals: UInt32...) -> Duration {
            var bench = Bench()
            bench.open()
            for interval in intervals {
                let pong = bench.receive {
                    $0.ping.number = 9
                    $0.ping.intervalSeconds = interval
                }
                #expect(pong.contains { if case .send(let packet) = $0 { packet.pong.number == 9 } else { false } })
            }
            let heard = bench.now
            while bench.handle(.ticked).closeCode == nil { bench.now += .milliseconds(500) }
            return heard.duration(to: bench.now)
        }
        #expect(lives() == .seconds(150))
        #expect(lives(1) == .milliseconds(2_500))
        #expect(lives(1, 0) == .milliseconds(2_500), "as before")
        #expect(lives(200) == .seconds(500))
        #expect(lives(301) == .seconds(750) && lives(.max) == .seconds(750))
        #expect(lives(300, 20) == .seconds(50))
    }

    @Test("Connected names the heartbeat and the longest interval")
    func connected() {
        var bench = Bench()
        let told = bench.open().compactMap { action -> Mss_Device_V1_Connected? in
            if case .send(let packet) = action, case .connected(let connected)? = packet.body { connected } else { nil }
        }
        #expect(told.map(\.heartbeatSeconds) == [60] && told.map(\.maxHeartbeatSeconds) == [300])
    }

    // MARK: Discarded ranges

    @Test("the first batch after a threshold names the end of the discarded range, and no later batch does")
    func passedOverByThreshold() {
        var bench = Bench([Bench.configuration("B", repush: .threshold(2))])
        bench.open([("B", 3, 100, 0)])
        var page = Bench.page(after: 0, ids: [99, 100])
        page.discardedUpto = 97
        #expect(
            bench.handle(.fetched(page, channelID: 3)).batches.map(\.passedOverUpto) == [97])
        let next = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 100, ids: [101])))
        #expect(next.batches.map(\.passedOverUpto) == [0])
    }

    @Test("a threshold that discards nothing is not reported")
    func nothingPassedOver() {
        var bench = Bench([Bench.configuration("B", repush: .threshold(10))])
        bench.open([("B", 3, 100, 0)])
        let page = Bench.page(after: 0, ids: [99, 100])
        #expect(bench.handle(.fetched(page, channelID: 3)).batches.map(\.passedOverUpto) == [0])
    }

    @Test("the first batch to a new store on an old device says that older data exists")
    func newStore() {
        for (reported, expected) in [(Int64(0), Int64(8)), (5, 8), (8, 0), (9, 0)] {
            var bench = Bench()
            bench.open([("B", 3, 9, 8)]) {
                guard reported > 0 else { return }
                $0.bind.syncPoints = [
                    .with {
                        $0.bizType = "B"
                        $0.oplogID = reported
                    }
                ]
            }
            let first = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 9, ids: [10])))
            let pages = bench.handle(.fetched(Bench.page(after: 8, ids: [9, 10]), channelID: 3))
            #expect((first + pages).batches.map(\.passedOverUpto) == [expected], "reported \(reported)")
        }
    }
}
