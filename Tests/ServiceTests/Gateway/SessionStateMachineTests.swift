import BusMessages
import DeliveryHistory
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import TestSupport
import Testing

@testable import Gateway

private typealias Bench = SessionBench

@Suite("A device session, from its first frame to its end")
struct SessionStateMachineTests {
    @Test("the first frame must be Connect, and Connect comes once")
    func connectComesFirst() {
        var bench = Bench()
        #expect(bench.receive { $0.ping.number = 1 }.closeCode == .protocolViolation)
        bench = Bench()
        bench.open()
        #expect(bench.receive { $0.connect.protocolVersion = 1 }.closeCode == .protocolViolation)
    }

    @Test("a bind number within Connect starts at 1") func bindNumberZero() {
        var bench = Bench()
        let actions = bench.receive {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "i"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
            $0.connect.bind.userID = "u"
        }
        #expect(actions.closeCode == .protocolViolation)
    }

    @Test(
        "an app version that the store cannot keep, or a longer one, counts as unknown",
        arguments: [("1.0", "1.0"), ("1\0", ""), (String(repeating: "1", count: 101), "")])
    func appVersion(said: String, kept: String) {
        let connect = Mss_Device_V1_Connect.with {
            $0.deviceID = "d"
            $0.storeID = "s"
            $0.appVersion = said
        }
        guard case .accepted(let identity) = ConnectCheck.identity(of: connect, signedBy: nil) else {
            Issue.record("it is accepted")
            return
        }
        #expect(identity.traits.appVersion == kept)
    }

    @Test("an unknown instance is closed for good")
    func unknownInstance() {
        var bench = Bench()
        let actions = bench.receive {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "other"
        }
        #expect(actions.closeCode == .unknownInstance)
        #expect(bench.receive { $0.ping.number = 1 }.isEmpty)
    }

    @Test("a notice that continues the position is sent; a repeat is not; a gap is read from the position")
    func noticesFollowThePosition() {
        var bench = Bench()
        bench.open([("B", 3, 10, 10)])
        #expect(
            bench.handle(.noticed(Bench.notice("B", channel: 3, after: 10, ids: [11, 12]))).pushed
                == [
                    11, 12,
                ])
        #expect(
            bench.handle(.noticed(Bench.notice("B", channel: 3, after: 10, ids: [11, 12]))).pushed
                .isEmpty)
        #expect(
            bench.handle(.noticed(Bench.notice("B", channel: 3, after: 11, ids: [12, 13]))).pushed
                == [
                    13
                ])
        let gap = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 15, ids: [16])))
        #expect(gap.pushed.isEmpty)
        #expect(gap.fetches.map(\.after) == [13])
        let page = bench.handle(.fetched(Bench.page(after: 13, ids: [14, 15, 16]), channelID: 3))
        #expect(page.pushed == [14, 15, 16])
    }

    @Test("the backlog is read from the sync point, and CaughtUp follows it")
    func readsTheBacklog() {
        var bench = Bench()
        let opened = bench.open([("B", 3, 10, 4)])
        #expect(opened.fetches.map(\.after) == [4])
        #expect(!opened.isCaughtUp)
        let page = bench.handle(.fetched(Bench.page(after: 4, ids: [5, 10]), channelID: 3))
        #expect(page.pushed == [5, 10])
        #expect(page.isCaughtUp)
        #expect(page.batches.first?.after == 0, "the device reported no position")
    }

    @Test("D10: the threshold counts for the backlog of an opening, never while connected")
    func thresholdCountsForBacklogs() {
        var bench = Bench([Bench.configuration("B", repush: .threshold(10))])
        #expect(bench.open([("B", 3, 100, 0)]).fetches.map(\.newest) == [10])
        _ = bench.handle(.fetched(Bench.page(after: 0, ids: Array(91...100)), channelID: 3))
        let gap = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 200, ids: [201])))
        #expect(gap.fetches.map(\.newest) == [0])
        bench = Bench([Bench.configuration("B", repush: .threshold(10))])
        bench.open()
        _ = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 0, ids: [1])))
        let late = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 50, ids: [51])))
        #expect(late.fetches.map(\.newest) == [0])
    }

    @Test("D12: skipped oplogs move the sync point when nothing before them is in flight, without a frame")
    func skippingMovesTheSyncPoint() {
        var bench = Bench()
        bench.open([("B", 3, 10, 10)])
        func skipped(_ id: Int64) -> ChannelNotice {
            let targeting = Targeting(operatingSystem: .android)
            return Bench.notice("B", channel: 3, after: id - 1, ids: [id], targeting: targeting)
        }
        let first = bench.handle(.noticed(skipped(11)))
        #expect(first.recorded == [11] && first.pushed.isEmpty && first.batches.isEmpty)
        let sent = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 11, ids: [12])))
        #expect(sent.pushed == [12] && sent.recorded.isEmpty)
        bench.machine.write(sent)
        #expect(bench.handle(.noticed(skipped(13))).recorded.isEmpty, "12 is not stored yet")
        let acknowledged = bench.receive { packet in
            packet.storedAck.channels = [
                .with {
                    $0.bizType = "B"
                    $0.bindNumber = 1
                    $0.upto = 12
                }
            ]
        }
        #expect(acknowledged.recorded == [13])
    }

    @Test(
        "a stage for other devices moves the sync point like any targeting, without a fact")
    func otherDevicesStage() {
        var bench = Bench()
        bench.open([("B", 3, 10, 10)])
        let slot = DeviceSlot(of: DeviceID("d")).number
        func noticed(_ id: Int64, _ targeting: Targeting) -> [SessionAction] {
            let notice = Bench.notice("B", channel: 3, after: id - 1, ids: [id], targeting: targeting)
            return bench.handle(.noticed(notice))
        }
        func areSkipped(_ actions: [SessionAction]) -> Bool {
            actions.contains { if case .skipped = $0 { true } else { false } }
        }
        let others = noticed(11, Targeting(share: DeviceShare(start: slot + 1, size: 9_999)))
        #expect(others.recorded == [11] && others.pushed.isEmpty && !areSkipped(others))
        #expect(areSkipped(noticed(12, Targeting(operatingSystem: .android))))
        #expect(noticed(13, Targeting(share: DeviceShare(start: slot, size: 1))).pushed == [13])
    }

    @Test("a reported position above the server's record is recorded when the device connects")
    func reportedPositionsAreRecorded() {
        var bench = Bench()
        _ = bench.receive {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "i"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
            $0.connect.bind.bindNumber = 1
            $0.connect.bind.userID = "u"
            $0.connect.bind.syncPoints = [
                .with {
                    $0.bizType = "B"
                    $0.oplogID = 8
                }
            ]
        }
        let opened = bench.handle(.registered(Bench.reply([("B", 3, 10, 5)]), bindNumber: 1))
        #expect(opened.recorded == [8] && opened.fetches.map(\.after) == [8])
    }

    @Test("D8: single-device data goes to the owner alone, and its backlog is read under the owner's name")
    func onlyTheOwnerReceives() {
        var bench = Bench([Bench.configuration("B", multiDevice: false)])
        var reply = Bench.reply([("B", 3, 10, 4)])
        _ = bench.open()
        reply.owner = true
        let owned = bench.handle(.registered(reply, bindNumber: 1))
        #expect(owned.fetches.map(\.after) == [4])
        #expect(
            owned.contains { if case .fetch(let page) = $0 { page.onlyOwner == DeviceID("d") } else { false } })
        #expect(bench.handle(.fetched(Bench.page(after: 4, ids: [10]), channelID: 3)).pushed == [10])
        let mine = Bench.notice("B", channel: 3, after: 10, ids: [11], owner: "d")
        #expect(bench.handle(.noticed(mine)).pushed == [11])
        let unnamed = Bench.notice("B", channel: 3, after: 11, ids: [12])
        let asked = bench.handle(.noticed(unnamed))
        #expect(asked.pushed.isEmpty && asked.fetches.map(\.after) == [11], "read again, where ownership is asked")
        _ = bench.handle(.fetched(Bench.page(after: 11, ids: [12]), channelID: 3))
        // Another device has bound the user; the notice or the reply is enough.
        let others = Bench.notice("B", channel: 3, after: 12, ids: [13], owner: "e")
        let lost = bench.handle(.noticed(others))
        #expect(lost.pushed.isEmpty && lost.fetches.isEmpty)
    }

    @Test("D8: a page that the store refuses because the owner changed is not requested again")
    func notOwnerAnyMore() {
        var bench = Bench([Bench.configuration("B", multiDevice: false)])
        var reply = Bench.reply([("B", 3, 10, 4)])
        _ = bench.open()
        reply.owner = true
        _ = bench.handle(.registered(reply, bindNumber: 1))
        let refused = bench.handle(.fetched(.with { $0.notOwner = true }, channelID: 3))
        #expect(refused.pushed.isEmpty && refused.fetches.isEmpty)
        bench.now += .seconds(1)
        #expect(bench.handle(.ticked).fetches.isEmpty)
    }

    @Test("D6: a non-persistent push waits until earlier data is read, and is sent in order")
    func liveDataWaitsForTheBacklog() {
        var bench = Bench()
        bench.open([("B", 3, 10, 4)])
        let live = Bench.notice("B", channel: 3, after: 10, ids: [11], persistent: false)
        let early = bench.handle(.noticed(live))
        #expect(early.pushed.isEmpty && bench.replyEntries(of: live).held == [11])
        #expect(
            bench.handle(.fetched(Bench.page(after: 4, ids: [5, 8]), channelID: 3)).pushed == [5, 8])
        var last = Bench.page(after: 8, ids: [10])
        last.upto = 11
        #expect(bench.handle(.fetched(last, channelID: 3)).pushed == [10, 11])
        let next = Bench.notice("B", channel: 3, after: 11, ids: [12], persistent: false)
        let sent = bench.handle(.noticed(next))
        #expect(sent.pushed == [12] && bench.replyEntries(of: next).held == [12])
        let again = bench.handle(.noticed(next))
        #expect(again.pushed.isEmpty)
    }

    @Test("H4: a session that is not eligible refuses a non-persistent push") func withheldIsNotTaken() {
        var bench = Bench([Bench.configuration("B", checks: true)])
        bench.open([("B", 3, 10, 10)])
        let live = Bench.notice("B", channel: 3, after: 10, ids: [11], persistent: false)
        let actions = bench.handle(.noticed(live))
        #expect(actions.pushed.isEmpty && bench.replyEntries(of: live).held.isEmpty)
    }

    @Test("a notice that overtakes the registration's answer is not lost")
    func earlyNoticesAreKept() {
        var bench = Bench()
        _ = bench.receive {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "i"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
            $0.connect.bind.bindNumber = 1
            $0.connect.bind.userID = "u"
        }
        #expect(bench.handle(.noticed(Bench.notice("B", channel: 3, after: 0, ids: [1]))).isEmpty)
        let opened = bench.handle(.registered(Bench.reply([]), bindNumber: 1))
        #expect(opened.fetches.map(\.after) == [0])
    }

    @Test("D16: checked data is sent only while the verdict is valid, checked at every batch")
    func verdictIsAskedAtEveryBatch() {
        var bench = Bench([Bench.configuration("B", checks: true, verdictLifetime: .seconds(1))])
        #expect(bench.open([("B", 3, 5, 0)]).fetches.isEmpty)
        let valid = Mss_Bus_V1_ValidateReply.with { $0.verdict = .valid }
        let opened = bench.handle(.validated(valid, bindNumber: 1, askedAt: bench.now))
        #expect(opened.fetches.map(\.after) == [0])
        bench.now += .seconds(2)
        let late = bench.handle(.fetched(Bench.page(after: 0, ids: [1, 5]), channelID: 3))
        #expect(late.pushed.isEmpty, "the verdict ran out while the page was on its way")
        let again = bench.handle(.validated(valid, bindNumber: 1, askedAt: bench.now))
        #expect(again.pushed == [1, 5], "it waited for the word")
        let invalid = Mss_Bus_V1_ValidateReply.with { $0.verdict = .invalid }
        _ = bench.handle(.validated(invalid, bindNumber: 1, askedAt: bench.now))
        #expect(
            bench.handle(.noticed(Bench.notice("B", channel: 3, after: 5, ids: [6]))).pushed.isEmpty)
    }

    @Test("a verdict that arrives before a bind's registration is sent after BindResult")
    func verdictBeforeTheBind() {
        var bench = Bench()
        _ = bench.receive {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "i"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
            $0.connect.bind.bindNumber = 1
            $0.connect.bind.userID = "u"
        }
        let invalid = Mss_Bus_V1_ValidateReply.with { $0.verdict = .invalid }
        let early = bench.handle(.validated(invalid, bindNumber: 1, askedAt: bench.now))
        #expect(early.sent.isEmpty)
        let opened = bench.handle(.registered(Bench.reply([]), bindNumber: 1))
        #expect(opened.sent == ["connected", "bindResult", "sessionState", "caughtUp"])
    }

    @Test("a position above the head counts as the head, also in what follows") func positionAboveTheHead() {
        var bench = Bench()
        bench.open([("B", 3, 6, 6)]) {
            $0.bind.syncPoints = [
                .with {
                    $0.bizType = "B"
                    $0.oplogID = 1_000
                }
            ]
        }
        let batch = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 6, ids: [7]))).batches
        #expect(batch.map(\.after) == [6] && batch.map(\.upto) == [7])
    }

    @Test("without the lease no data is sent; with it again everything is read, without a threshold's loss")
    func leaseIsAskedAtEveryBatch() {
        var bench = Bench([Bench.configuration("B", repush: .threshold(10))])
        bench.open([("B", 3, 5, 5)])
        bench.holdsLease = false
        #expect(
            bench.handle(.noticed(Bench.notice("B", channel: 3, after: 5, ids: [6]))).pushed.isEmpty)
        bench.holdsLease = true
        #expect(bench.handle(.registrationDue).opens == 1)
        let announced = bench.handle(.registered(Bench.reply([("B", 3, 6, 5)]), bindNumber: 1))
        #expect(announced.fetches.map(\.after) == [5])
        #expect(announced.fetches.map(\.newest) == [0])
    }

    @Test("D17: a configuration set offline withholds, set online it goes on")
    func offlineWithholds() {
        var bench = Bench()
        bench.open([("B", 3, 5, 5)])
        bench.configurations[BizType("B")]?.isOnline = false
        #expect(
            bench.handle(.noticed(Bench.notice("B", channel: 3, after: 5, ids: [6]))).pushed.isEmpty)
        bench.configurations[BizType("B")]?.isOnline = true
        #expect(bench.handle(.contextChanged).fetches.map(\.after) == [5])
    }

    @Test("a former user's data is never sent under the next bind")
    func userSwitchForgets() {
        var bench = Bench()
        bench.open([("B", 3, 9, 5)])
        let switched = bench.receive {
            $0.bind.bindNumber = 2
            $0.bind.userID = "v"
        }
        #expect(switched.opens == 1)
        #expect(bench.handle(.fetched(Bench.page(after: 5, ids: [9]), channelID: 3)).pushed.isEmpty)
        #expect(
            bench.handle(.noticed(Bench.notice("B", channel: 3, after: 9, ids: [10]))).pushed.isEmpty)
        let ack = bench.receive {
            $0.storedAck.channels = [
                .with {
                    $0.bizType = "B"
                    $0.bindNumber = 1
                    $0.upto = 9
                }
            ]
        }
        #expect(ack.isEmpty)
    }

    @Test("a bind during a registration is registered when that one is answered, under the same connection epoch")
    func bindsAreRegisteredOneByOne() {
        var bench = Bench()
        _ = bench.receive {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "i"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
        }
        let bind = bench.receive {
            $0.bind.bindNumber = 1
            $0.bind.userID = "u"
        }
        #expect(bind.opens == 0)
        let answered = bench.handle(.registered(Bench.reply([]), bindNumber: 0))
        #expect(answered.opens == 1)
        #expect(bench.machine.connectionEpoch == 7)
    }

    @Test("while a bind's registration must be repeated no user data is sent: the device would drop it")
    func noticeBeforeRepeatedRegistration() {
        var bench = Bench()
        bench.open()
        _ = bench.receive {
            $0.bind.bindNumber = 2
            $0.bind.userID = "u"
            $0.bind.sessionID = "another"
            $0.bind.syncPoints = [
                .with {
                    $0.bizType = "B"
                    $0.oplogID = 4
                }
            ]
        }
        _ = bench.handle(.registered(nil, bindNumber: 1))
        let early = bench.handle(.noticed(Bench.notice("B", channel: 9, after: 4, ids: [5])))
        #expect(early.pushed.isEmpty && early.fetches.isEmpty)
        bench.now += .seconds(1)
        #expect(bench.handle(.ticked).opens == 1)
        let opened = bench.handle(.registered(Bench.reply([("B", 9, 4, 0)]), bindNumber: 2))
        #expect(opened.sent.first == "bindResult" && opened.fetches.map(\.after) == [4])
    }

    @Test("a channel that a failover lost continues under its new number, from the device's position")
    func channelMadeAnew() {
        var bench = Bench()
        bench.open([("B", 9, 4, 4)])
        #expect(
            bench.handle(.noticed(Bench.notice("B", channel: 9, after: 4, ids: [5]))).pushed == [5])
        let anew: Int64 = 1 << 40
        let notice = Bench.notice("B", channel: anew + 1, after: anew, ids: [anew + 1])
        #expect(bench.handle(.noticed(notice)).fetches.map(\.after) == [5])
        let page = Bench.page(after: 5, ids: [anew + 1])
        let batch = bench.handle(.fetched(page, channelID: anew + 1)).batches.first
        #expect(batch?.after == 5 && batch?.upto == anew + 1)
        // A late notice of the former channel has no effect.
        let late = bench.handle(.noticed(Bench.notice("B", channel: 9, after: 5, ids: [6])))
        #expect(late.isEmpty)
    }

    @Test("an acknowledgement is clamped to what was sent and never falls")
    func acknowledgementsAreClamped() throws {
        var bench = Bench()
        bench.open([("B", 3, 5, 5)])
        let sent =
            bench.handle(.noticed(Bench.notice("B", channel: 3, after: 5, ids: [6])))
            + bench.handle(.noticed(Bench.notice("B", channel: 3, after: 6, ids: [7])))
        func acknowledge(_ upto: Int64) -> Int64? {
            bench.receive {
                $0.storedAck.channels = [
                    .with {
                        $0.bizType = "B"
                        $0.bindNumber = 1
                        $0.upto = upto
                    }
                ]
            }.compactMap { if case .record(_, _, _, let upto) = $0 { upto.value } else { nil } }.first
        }
        #expect(acknowledge(6) == nil, "it waits to be written")
        bench.machine.write(sent)
        #expect(acknowledge(6) == 6)
        #expect(acknowledge(5) == nil)
        #expect(acknowledge(1_000) == 7)
    }

    @Test("a slow device's window closes and opens with its acknowledgements")
    func windowBounds() {
        var bench = Bench()
        bench.open([("B", 3, 0, 0)])
        let large = SessionLimits().windowBytes
        let sent = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 0, ids: [1], payload: large)))
        #expect(bench.machine.write(sent).pushed == [1])
        let full = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 1, ids: [2])))
        #expect(full.pushed.isEmpty)
        #expect(full.fetches.isEmpty)
        let freed = bench.receive {
            $0.storedAck.channels = [
                .with {
                    $0.bizType = "B"
                    $0.bindNumber = 1
                    $0.upto = 1
                }
            ]
        }
        #expect(freed.fetches.map(\.after) == [1])
    }

    @Test("a newer connection of the same device closes the older one, never itself")
    func takeover() {
        var bench = Bench()
        bench.open()
        #expect(bench.handle(.superseded(by: 7)).isEmpty)
        #expect(bench.handle(.superseded(by: 8)).closeCode == .superseded)
    }

    @Test("a device is sent to another gateway when no data to it is in flight") func surplus() {
        var bench = Bench()
        #expect(bench.handle(.surplus).isEmpty, "it has not said who it is")
        bench.connect()
        #expect(bench.handle(.surplus).isEmpty, "it is being registered")
        bench = Bench()
        bench.open()
        #expect(bench.handle(.surplus).closeCode == .surplus)
        #expect(CloseCode.Group(code: CloseCode.surplus.rawValue) == .reconnectLater)
    }

    @Test("C1: an operator ends a connection in any state, and the device reconnects a little later")
    func disconnection() {
        var bench = Bench()
        #expect(bench.handle(.disconnectedByOperator).isEmpty, "it has not said who it is")
        bench.connect()
        #expect(bench.handle(.disconnectedByOperator).closeCode == .disconnected)
        bench = Bench()
        bench.open()
        #expect(bench.handle(.disconnectedByOperator).closeCode == .disconnected)
        #expect(bench.handle(.disconnectedByOperator).isEmpty, "it is closed")
        #expect(CloseCode.Group(code: CloseCode.disconnected.rawValue) == .reconnectLater)
        #expect(CloseCode.disconnected.retryAfterMilliseconds == 2_000...5_000)
    }

    @Test("a request that failed is repeated after a moment")
    func failuresAreRepeated() {
        var bench = Bench()
        bench.open([("B", 3, 5, 0)])
        _ = bench.handle(.fetched(nil, channelID: 3))
        #expect(bench.handle(.ticked).fetches.isEmpty)
        bench.now += .seconds(1)
        #expect(bench.handle(.ticked).fetches.map(\.after) == [0])
    }

    @Test("random events never reorder, repeat or invent an oplog", arguments: 0..<200)
    func randomEvents(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var bench = Bench()
        bench.open([("B", 3, 0, 0)])
        var head: Int64 = 0
        var shown: [Int64] = []
        var pending: [Int64] = []
        func perform(_ actions: [SessionAction]) {
            shown += actions.pushed
            pending += actions.fetches.map(\.after)
        }
        for _ in 0..<200 {
            switch Int.random(in: 0..<5, using: &generator) {
            case 0, 1:
                // The channel grows; the notice may be lost.
                let step = Int64.random(in: 1...3, using: &generator)
                let notice = Bench.notice("B", channel: 3, after: head, ids: Array(head + 1...head + step))
                head += step
                if Bool.random(using: &generator) { perform(bench.handle(.noticed(notice))) }
            case 2:
                // A repeated or disordered notice.
                let after = Int64.random(in: 0...head, using: &generator)
                guard after < head else { continue }
                perform(
                    bench.handle(.noticed(Bench.notice("B", channel: 3, after: after, ids: Array(after + 1...head)))))
            case 3 where !pending.isEmpty:
                let after = pending.removeFirst()
                if Bool.random(using: &generator) {
                    let upto = min(head, after + 3)
                    let ids = after < upto ? Array(after + 1...upto) : []
                    perform(bench.handle(.fetched(Bench.page(after: after, ids: ids), channelID: 3)))
                } else {
                    perform(bench.handle(.fetched(nil, channelID: 3)))
                }
            default:
                bench.now += .seconds(1)
                _ = bench.receive { $0.ping.number = 1 }
                perform(bench.handle(.ticked))
            }
        }
        // Heal: the sweep reports the head, and all page requests are answered.
        perform(bench.handle(.noticed(Bench.notice("B", channel: 3, after: head, ids: []))))
        while !pending.isEmpty {
            let after = pending.removeFirst()
            perform(
                bench.handle(
                    .fetched(Bench.page(after: after, ids: after < head ? Array(after + 1...head) : []), channelID: 3)))
        }
        bench.now += .seconds(1)
        perform(bench.handle(.ticked))
        while !pending.isEmpty {
            let after = pending.removeFirst()
            perform(
                bench.handle(
                    .fetched(Bench.page(after: after, ids: after < head ? Array(after + 1...head) : []), channelID: 3)))
        }
        #expect(shown == Array(1...max(head, 1)).filter { $0 <= head }, "seed \(seed)")
    }
}
