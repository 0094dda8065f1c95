import BusMessages
import DeviceProtocol
import NIOCore
import ServiceKit
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway
@testable import MQTT

private typealias Bench = SessionBench

/// A recall, a revocation and an invalid verdict apply to all data that the socket has not accepted.
@Suite("H7, V6: batches that are not written yet") struct UnwrittenDataTests {
    private static let years = WallTime(milliseconds: 4_000_000_000_000)

    /// An oplog whose payload names it.
    private static func oplog(_ id: Int64, recalls: Int64? = nil) -> Oplog {
        Oplog(
            id: OplogID(id), thirdMessageID: ThirdMessageID("m\(id)"),
            payload: recalls == nil ? Array("p\(id)".utf8) : [], isBinary: false, targeting: .everyone,
            validUntil: years, createdAt: WallTime(milliseconds: 0), isPersistent: true,
            recalls: recalls.map { OplogID($0) })
    }

    private static func page(
        after: Int64 = 0, _ oplogs: [Oplog], upto: Int64? = nil
    ) -> Mss_Bus_V1_FetchReply {
        .with {
            $0.after = after
            $0.upto = upto ?? oplogs.last?.id.value ?? after
            $0.entries = oplogs.map(\.bus)
        }
    }

    private static func notice(after: Int64, _ oplogs: [Oplog]) -> SessionEvent {
        .noticed(
            ChannelNotice(
                channelID: 3, address: ChannelAddress(target: Bench.target, bizType: BizType("B")),
                after: OplogID(after), upto: oplogs.last?.id ?? OplogID(after), entries: oplogs))
    }

    private static func pushes(_ ids: ClosedRange<Int64>) -> [Oplog] { ids.map { oplog($0) } }

    private static func verdict(_ verdict: Mss_Bus_V1_Verdict) -> SessionEvent {
        .validated(.with { $0.verdict = verdict }, bindNumber: 1, askedAt: .now)
    }

    /// All batches of the frames, as the ranges of positions.
    private static func steps(_ frames: [Mss_Device_V1_Packet]) -> [[Int64]] {
        frames.flatMap(\.push.batches).map { [$0.after, $0.upto] + $0.entries.map(\.oplogID) }
    }

    // MARK: Recall

    @Test("A8: a waiting page is written without a recalled oplog and without its tombstone")
    func recalledWhileGathered() throws {
        let bench = try HandlerBench([Bench.configuration("B"), Bench.configuration("C")])
        try bench.open([("B", 3, 2, 0), ("C", 4, 1, 0)])
        bench.handle(.fetched(Self.page(Self.pushes(1...2)), channelID: 3))
        bench.handle(Self.notice(after: 2, [Self.oplog(3, recalls: 2)]))
        bench.turn()
        #expect(try bench.pushed().isEmpty)
        let tombstone = Self.oplog(3, recalls: 2)
        bench.handle(.fetched(Self.page([Self.oplog(1), tombstone]), channelID: 3))
        bench.turn()
        bench.handle(Self.notice(after: 3, [Self.oplog(4)]))
        bench.turn()
        #expect(Self.steps(try bench.written()) == [[0, 3, 1], [3, 4, 4]])
    }

    @Test("H7: a page has a tombstone of a waiting oplog before any notice: both are sent, or neither")
    func tombstoneOfWhatWaits() throws {
        for isTold in [false, true] {
            let bench = try HandlerBench([Bench.configuration("B"), Bench.configuration("C")])
            try bench.open([("B", 3, 3, 0), ("C", 4, 1, 0)])
            let tombstone = Self.oplog(3, recalls: 2)
            bench.handle(.fetched(Self.page(Self.pushes(1...2)), channelID: 3))
            bench.handle(.fetched(Self.page(after: 2, [tombstone]), channelID: 3))
            if isTold {
                bench.handle(Self.notice(after: 2, [tombstone]))
                bench.turn()
                bench.handle(.fetched(Self.page([Self.oplog(1), tombstone]), channelID: 3))
            }
            bench.handle(.fetched(Self.page([Self.oplog(1)]), channelID: 4))
            bench.turn()
            let own: [[Int64]] = isTold ? [[0, 3, 1]] : [[0, 2, 1, 2], [2, 3, 3]]
            #expect(Self.steps(try bench.written()) == own + [[0, 1, 1]])
        }
    }

    @Test("H7: a waiting non-persistent push is not sent with the page of its tombstone")
    func tombstoneOfLive() {
        var cursor = ChannelCursor(channelID: 3, head: OplogID(2), recorded: .zero, reported: nil)
        var live = Self.oplog(2)
        live.isPersistent = false
        cursor.bufferNonPersistent([live])
        let taken = cursor.accept(
            upto: OplogID(3), entries: [Self.oplog(1), Self.oplog(3, recalls: 2)],
            device: DeviceTraits(operatingSystem: .iOS, appVersion: "1", slot: DeviceSlot(number: 0)),
            now: WallTime(milliseconds: 0))
        #expect(taken.batches.flatMap(\.entries).map(\.id) == [OplogID(1)])
    }

    @Test("A8: a recall applies to the earlier notices of the same turn")
    func recalledInTheTurn() throws {
        let bench = try HandlerBench([Bench.configuration("B")])
        try bench.open([("B", 3, 0, 0)])
        let handler = bench.session.handler.value
        for event in [Self.notice(after: 0, Self.pushes(1...2)), Self.notice(after: 2, [Self.oplog(3, recalls: 1)])] {
            guard case .noticed(let notice) = event else { continue }
            _ = handler.process(notice, in: bench.runtime.contexts.make())
        }
        handler.endTurn()
        #expect(try bench.pushed().isEmpty, "it is read again")
        bench.handle(.fetched(Self.page([Self.oplog(2), Self.oplog(3, recalls: 1)]), channelID: 3))
        bench.turn()
        #expect(Self.steps(try bench.written()) == [[0, 3, 2]])
    }

    @Test("R8: a gateway that was paused between check and write does not write after the end of its lease")
    func pausedBeforeWrite() throws {
        let time = SteppedClock()
        let bench = try HandlerBench([Bench.configuration("B")], clock: time.clock, leasedAt: time.start)
        try bench.open([("B", 3, 0, 0)])
        let handler = bench.session.handler.value
        guard case .noticed(let notice) = Self.notice(after: 0, Self.pushes(1...2)) else { return }
        _ = handler.process(notice, in: bench.runtime.contexts.make())
        time.set(Limits.gatewayLease)
        handler.endTurn()
        #expect(try bench.pushed().isEmpty)
    }

    @Test("A8: a page that was read before the recall does not reach the cursor of a later bind of the same user")
    func recalledBeforeRebind() throws {
        var bench = Bench()
        #expect(bench.open([("B", 3, 1, 0)]).fetches.map(\.after) == [0])
        _ = bench.handle(Self.notice(after: 1, [Self.oplog(2, recalls: 1)]))
        _ = bench.receive {
            $0.bind.bindNumber = 2
            $0.bind.userID = "u"
        }
        let rebound = bench.handle(.registered(Bench.reply([("B", 3, 2, 0)]), bindNumber: 2))
        #expect(rebound.fetches.map(\.after) == [0])
        let late = SessionEvent.fetched(Self.page([Self.oplog(1)]), channelID: 3, bindNumber: 1)
        #expect(bench.handle(late).pushed.isEmpty)
        #expect(bench.handle(.fetched(nil, channelID: 3, bindNumber: 1)).isEmpty)
        let own = SessionEvent.fetched(Self.page([Self.oplog(2, recalls: 1)]), channelID: 3, bindNumber: 2)
        #expect(bench.handle(own).pushed.isEmpty)
        #expect(bench.handle(Self.notice(after: 2, [Self.oplog(3)])).pushed == [3])
    }

    @Test("A8: a recall before the registration's reply also applies to a later notice")
    func recalledBeforeRegistration() throws {
        var bench = Bench()
        bench.connect()
        _ = bench.handle(Self.notice(after: 1, [Self.oplog(2, recalls: 1)]))
        _ = bench.handle(.registered(Bench.reply([("B", 3, 0, 0)]), bindNumber: 1))
        #expect(bench.handle(Self.notice(after: 0, [Self.oplog(1)])).pushed.isEmpty)
    }

    @Test("A8: a waiting re-read of a recalled oplog is not written; others of its channel are")
    func recalledReread() throws {
        var bench = Bench()
        bench.open()
        _ = bench.handle(.registrationDue)
        var reply = Bench.reply([("B", 3, 3, 3)])
        reply.rereads = [Int64(1), 2].map { id in
            .with {
                $0.rereadID = id + 7
                $0.channelID = 3
                $0.oplog = Self.oplog(id).bus
            }
        }
        let sent = bench.handle(.registered(reply, bindNumber: 1))
        #expect(sent.pushed == [1, 2])
        let tombstone = bench.handle(Self.notice(after: 3, [Self.oplog(4, recalls: 1)]))
        let left = bench.machine.recheck((sent + tombstone).gathered, in: bench.context)
        #expect(left.waiting.flatMap { $0.batch.entries.map(\.oplogID) } == [2])
    }

    @Test(
        "A8: a waiting resend leaves out recalled oplogs and is dropped when acknowledged",
        arguments: [false, true])
    func recalledRepeat(byPage: Bool) throws {
        var bench = Bench()
        bench.open([("B", 3, 0, 0)]) { $0.simple = true }
        let first = bench.handle(Self.notice(after: 0, Self.pushes(1...2)))
        bench.machine.write(first, at: bench.now)
        let again = bench.handle(.resendRecorded(channelID: 3, oplogID: OplogID(1), repeats: 1))
        #expect(again.pushed == [1, 2])
        let tombstone = Self.oplog(3, recalls: 1)
        if byPage {
            _ = bench.handle(.fetched(Self.page(after: 2, [tombstone]), channelID: 3))
        } else {
            _ = bench.handle(Self.notice(after: 2, [tombstone]))
        }
        let left = bench.machine.recheck(again.gathered, in: bench.context)
        #expect(left.waiting.flatMap { $0.batch.entries.map(\.oplogID) } == [2])
        _ = bench.receive {
            $0.storedAck.channels = [
                .with {
                    $0.kind = .user
                    $0.bizType = "B"
                    $0.upto = 2
                    $0.bindNumber = 1
                }
            ]
        }
        #expect(bench.machine.recheck(again.gathered, in: bench.context).waiting.isEmpty)
    }

    // MARK: A connection that takes nothing

    @Test("V6, H7: data for a slow device stays in the session and is not written after the revocation")
    func slowDevice() throws {
        let bench = try HandlerBench([Bench.configuration("B", checks: true), Bench.configuration("C")])
        try bench.open([("B", 3, 0, 0), ("C", 4, 0, 0)])
        bench.handle(Self.verdict(.valid))
        bench.turn()
        _ = try bench.written()
        bench.setWritable(false)
        bench.handle(Self.notice(after: 0, Self.pushes(1...2)))
        bench.handle(.fetched(Self.page(Self.pushes(1...2)), channelID: 3))
        bench.turn()
        #expect(try bench.pushed().isEmpty)
        bench.handle(.revoked(UserID("u"), digest: []))
        bench.setWritable(true)
        bench.turn()
        #expect(try bench.pushed().isEmpty && bench.isConnected)
    }

    @Test("D5: CaughtUp follows the data that waits for a slow device")
    func caughtUp() throws {
        let bench = try HandlerBench([Bench.configuration("B")])
        bench.receive {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "i"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
            $0.connect.bind.bindNumber = 1
            $0.connect.bind.userID = "u"
        }
        bench.turn()
        bench.handle(.registered(Bench.reply([("B", 3, 2, 0)]), bindNumber: 1))
        bench.setWritable(false)
        bench.handle(.fetched(Self.page(Self.pushes(1...2)), channelID: 3))
        bench.turn()
        #expect(!(try bench.written().contains { if case .caughtUp? = $0.body { true } else { false } }))
        bench.setWritable(true)
        bench.turn()
        let frames = try bench.written()
        #expect(Self.steps(frames) == [[0, 2, 1, 2]])
        if case .caughtUp? = frames.last?.body {} else { Issue.record("no CaughtUp behind the data") }
    }

    @Test("D5: a verdict between two pages of the backlog does not divide its frame", arguments: [true, false])
    func verdictBetweenPages(isValid: Bool) throws {
        let bench = try HandlerBench(
            [Bench.configuration("B"), Bench.configuration("C"), Bench.configuration("D", checks: true)])
        try bench.open([("B", 3, 2, 0), ("C", 4, 1, 0), ("D", 5, 1, 0)])
        bench.handle(.fetched(Self.page(Self.pushes(1...2)), channelID: 3))
        bench.handle(Self.verdict(isValid ? .valid : .invalid))
        bench.handle(.fetched(Self.page([Self.oplog(1)]), channelID: 4))
        bench.handle(.fetched(Self.page([Self.oplog(1)]), channelID: 5))
        bench.turn()
        let pushes = try bench.written().filter { !$0.push.batches.isEmpty }
        #expect(pushes.map(\.push.batches.count) == (isValid ? [2, 1] : [2]), "the checked data follows its verdict")
    }

    @Test(
        "V6, H7: data that the socket has not accepted is dropped with the connection", arguments: ["recall", "revoke"])
    func fullSocket(cause: String) throws {
        let bench = try HandlerBench([Bench.configuration("B", checks: true)])
        try bench.open([("B", 3, 0, 0)])
        bench.handle(Self.verdict(.valid))
        bench.turn()
        bench.fillSocket()
        bench.handle(Self.notice(after: 0, Self.pushes(1...2)))
        bench.handle(Self.notice(after: 2, [Self.oplog(3)]))
        #expect(bench.isConnected)
        switch cause {
        case "recall": bench.handle(Self.notice(after: 3, [Self.oplog(4, recalls: 1)]))
        default: bench.handle(.revoked(UserID("u"), digest: []))
        }
        bench.turn()
        #expect(!bench.isConnected)
    }

    // MARK: MQTT

    /// An MQTT client of the checked Sync ID B with these pushes in flight. It receives as many as it accepts at once.
    private static func client(
        _ ids: ClosedRange<Int64>, receiveMaximum: UInt16, checks: Bool = true, subscribes: Bool = true
    ) throws -> HandlerBench {
        let bench = try HandlerBench([Bench.configuration("B", checks: checks)], isMQTT: true)
        try bench.openClient([("B", 3, ids.upperBound, 0)], receiveMaximum: receiveMaximum)
        if checks { bench.handle(verdict(.valid)) }
        if subscribes { try bench.subscribe() }
        bench.handle(.fetched(page(pushes(ids)), channelID: 3))
        bench.turn()
        return bench
    }

    @Test("A3: with a window of 1 and 50 checked pushes the other 49 are not sent after the revocation")
    func revokedBehindWindow() throws {
        let bench = try Self.client(1...50, receiveMaximum: 1)
        #expect(try bench.published().map(\.payload) == ["p1"])
        bench.handle(.revoked(UserID("u"), digest: []))
        for packetID in UInt16(1)...50 { try bench.client(sends: .puback(packetID: packetID)) }
        #expect(try bench.published().isEmpty)
    }

    @Test("A3: a SUBSCRIBE after an invalid verdict brings no earlier data")
    func lateSubscribe() throws {
        let bench = try Self.client(1...5, receiveMaximum: 100, subscribes: false)
        #expect(try bench.published().isEmpty)
        bench.handle(Self.verdict(.invalid))
        try bench.subscribe()
        #expect(try bench.published().isEmpty)
    }

    @Test("A3, H7: a recalled oplog that waits for a packet id is not sent, nor is its tombstone")
    func recalledBehindWindow() throws {
        let bench = try Self.client(1...3, receiveMaximum: 1, checks: false)
        #expect(try bench.published().map(\.payload) == ["p1"])
        bench.handle(Self.notice(after: 3, [Self.oplog(4, recalls: 2)]))
        bench.turn()
        try bench.client(sends: .puback(packetID: 1))
        #expect(try bench.published().isEmpty, "it is read again")
        bench.handle(
            .fetched(Self.page(after: 1, [Self.oplog(3), Self.oplog(4, recalls: 2)]), channelID: 3))
        bench.turn()
        #expect(try bench.published().map(\.payload) == ["p3"])
        try bench.client(sends: .puback(packetID: 2))
        #expect(try bench.published().isEmpty)
    }

    @Test(
        "D13: with any window all data arrives once and in order, never beyond the window",
        arguments: [1, 3, 100] as [UInt16])
    func windows(receiveMaximum: UInt16) throws {
        let bench = try Self.client(1...50, receiveMaximum: receiveMaximum)
        var (payloads, open): ([String], [UInt16]) = ([], [])
        for _ in 1...50 {
            let sent = try bench.published()
            payloads += sent.map(\.payload)
            open += sent.map(\.packetID)
            #expect(open.count <= receiveMaximum)
            if !open.isEmpty { try bench.client(sends: .puback(packetID: open.removeFirst())) }
        }
        #expect(payloads == (1...50).map { "p\($0)" })
        bench.handle(Self.notice(after: 50, [Self.oplog(51)]))
        bench.turn()
        #expect(try bench.published().map(\.payload) == ["p51"])
    }

    @Test("D13: data without a subscription is withdrawn, and read from the client's position later")
    func suspended() throws {
        let bench = try HandlerBench([Bench.configuration("B")], isMQTT: true)
        try bench.openClient([("B", 3, 2, 0)], receiveMaximum: 10)
        try bench.client(sends: .subscribe(packetID: 1, [.init(filter: "other", qualityOfService: 1)]))
        bench.handle(.fetched(Self.page(Self.pushes(1...2)), channelID: 3))
        bench.turn()
        bench.turn()
        bench.handle(.registered(Bench.reply([("B", 3, 2, 0)]), bindNumber: 1))
        bench.turn()
        #expect(try bench.published().isEmpty)
        try bench.subscribe()
        bench.handle(.registered(Bench.reply([("B", 3, 2, 0)]), bindNumber: 1))
        bench.handle(.fetched(Self.page(Self.pushes(1...2)), channelID: 3))
        bench.turn()
        #expect(try bench.published().map(\.payload) == ["p1", "p2"])
    }

    @Test("D14: the ladder of a simple client begins when a batch was written, not when it was read")
    func ladder() throws {
        var bench = Bench()
        bench.open([("B", 3, 0, 0)]) { $0.simple = true }
        let sent = bench.handle(Self.notice(after: 0, Self.pushes(1...1)))
        bench.now += .seconds(3_600)
        #expect(bench.tick().isEmpty)
        bench.machine.write(sent, at: bench.now)
        #expect(bench.tick().isEmpty)
        bench.now += SessionLimits().firstResend
        #expect(!bench.tick().isEmpty)
    }

    @Test("V5: while a connection accepts no data the session neither reads nor requests verdicts")
    func noRoom() throws {
        var bench = Bench([Bench.configuration("B", checks: true, verdictLifetime: .zero)])
        bench.open([("B", 3, 0, 0)])
        _ = bench.answer(.valid)
        var full = bench.context
        full.room = 0
        let quiet = bench.machine.handle(Self.notice(after: 0, [Self.oplog(1)]), in: full)
        #expect(quiet.fetches.isEmpty && quiet.questions == 0 && quiet.pushed.isEmpty)
        let next = bench.handle(.roomGrew)
        #expect(next.fetches.map(\.after) == [0])
    }
}
