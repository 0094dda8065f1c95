import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

private typealias Bench = SessionBench

@Suite("Writes that concern a user need the eligibility of a hand-out (spec D8, D16)") struct SessionWriteTests {
    private static let claimed: Int64 = (1 << 53) - 1

    private static func point(_ id: Int64) -> Mss_Device_V1_SyncPoint {
        .with {
            $0.bizType = "B"
            $0.oplogID = id
        }
    }

    private static func reply(
        owner: Bool, epoch: Int64 = 0, head: Int64 = 10, point: Int64 = 4
    ) -> Mss_Bus_V1_SessionReply {
        var reply = Bench.reply([("B", 3, head, point)])
        reply.owner = owner
        reply.ownershipEpoch = epoch
        return reply
    }

    private static func ack(_ upto: Int64, bind: UInt32 = 1) -> Mss_Device_V1_Packet {
        .with {
            $0.storedAck.channels = [
                .with {
                    $0.bizType = "B"
                    $0.bindNumber = bind
                    $0.upto = upto
                }
            ]
        }
    }

    private static func report(_ number: UInt64, _ ids: [Int64]) -> Mss_Device_V1_Packet {
        .with {
            $0.confirmReport.reportID = number
            $0.confirmReport.channels = [
                .with {
                    $0.bizType = "B"
                    $0.bindNumber = 1
                    $0.oplogIds = ids
                }
            ]
        }
    }

    // MARK: A1

    @Test("D8: a position that a device claims does not move the one sync point of a user, of the owner either")
    func claimedPosition() {
        for isOwner in [false, true] {
            var bench = Bench([Bench.configuration("B", multiDevice: false)])
            bench.connect { $0.bind.syncPoints = [Self.point(Self.claimed)] }
            let opened = bench.machine.registered(Self.reply(owner: isOwner), bindNumber: 1, in: bench.world)
            #expect(opened.recorded.isEmpty)
            #expect(opened.fetches.map(\.after) == (isOwner ? [4] : []))
            let acknowledged = bench.machine.received(Self.ack(Self.claimed), in: bench.world)
            #expect(acknowledged.recorded.isEmpty, "nothing was sent that it could acknowledge")
        }
    }

    @Test("D8: the owner moves the one sync point by what it was sent, or what was skipped") func ownerAcknowledges() {
        var bench = Bench([Bench.configuration("B", multiDevice: false)])
        bench.connect { $0.bind.syncPoints = [Self.point(7)] }
        _ = bench.machine.registered(Self.reply(owner: true), bindNumber: 1, in: bench.world)
        let sent = bench.machine.fetched(Bench.page(after: 4, ids: [6, 10]), channelID: 3, in: bench.world)
        #expect(sent.batches.map(\.after) == [4], "the device drops what it has, and acknowledges it")
        bench.machine.write(sent)
        #expect(bench.machine.received(Self.ack(Self.claimed), in: bench.world).recorded == [10])
        var skipped = Bench.page(after: 10, ids: [])
        skipped.upto = 12
        _ = bench.machine.noticed(Bench.notice("B", channel: 3, after: 11, ids: [12]), in: bench.world)
        #expect(bench.machine.fetched(skipped, channelID: 3, in: bench.world).recorded == [12])
    }

    @Test("D8: a device that is the owner no longer moves nothing by what it was sent before") func formerOwner() {
        var bench = Bench([Bench.configuration("B", multiDevice: false)])
        bench.connect()
        _ = bench.machine.registered(Self.reply(owner: true), bindNumber: 1, in: bench.world)
        bench.machine.write(bench.machine.fetched(Bench.page(after: 4, ids: [10]), channelID: 3, in: bench.world))
        let lost = bench.machine.noticed(
            Bench.notice("B", channel: 3, after: 10, ids: [11], owner: "e"), in: bench.world)
        #expect(lost.opens == 1, "the store is asked: the notice may be of before")
        #expect(bench.machine.received(Self.ack(10), in: bench.world).recorded.isEmpty)
        let told = bench.machine.registered(Self.reply(owner: false, head: 11), bindNumber: 1, in: bench.world)
        #expect(told.recorded.isEmpty && told.fetches.isEmpty)
    }

    @Test("D8: a notice from before this device became the owner does not keep its data from it") func staleNotice() {
        var bench = Bench([Bench.configuration("B", multiDevice: false)])
        bench.connect()
        _ = bench.machine.registered(Self.reply(owner: true), bindNumber: 1, in: bench.world)
        _ = bench.machine.noticed(Bench.notice("B", channel: 3, after: 9, ids: [10], owner: "e"), in: bench.world)
        let told = bench.machine.registered(Self.reply(owner: true), bindNumber: 1, in: bench.world)
        #expect(told.fetches.isEmpty, "the page that was asked for is still on its way")
        #expect(bench.machine.fetched(Bench.page(after: 4, ids: [10]), channelID: 3, in: bench.world).pushed == [10])
    }

    @Test("D7: of a receiver with a store of its own the claimed position counts, once the verdict is valid")
    func claimOfAStore() {
        var bench = Bench([Bench.configuration("B", checks: true)])
        bench.connect { $0.bind.syncPoints = [Self.point(8)] }
        #expect(
            bench.machine.registered(Self.reply(owner: false), bindNumber: 1, in: bench.world).recorded.isEmpty,
            "a later change to one sync point would begin at the highest on record")
        let valid = bench.answer(.valid)
        #expect(valid.recorded == [8] && valid.fetches.map(\.after) == [8])
    }

    @Test("D17: a channel that gets one sync point for all devices is asked for anew; the claim counts no more")
    func becomesSingleDevice() {
        var bench = Bench([Bench.configuration("B")])
        bench.holdsLease = true
        bench.connect { $0.bind.syncPoints = [Self.point(Self.claimed)] }
        _ = bench.machine.registered(Self.reply(owner: true, head: 10, point: 10), bindNumber: 1, in: bench.world)
        bench.configurations[BizType("B")] = Bench.configuration("B", multiDevice: false)
        #expect(bench.machine.surroundingsChanged(in: bench.world).opens == 1)
        let told = bench.machine.registered(Self.reply(owner: true, point: 4), bindNumber: 1, in: bench.world)
        #expect(told.recorded.isEmpty && told.fetches.map(\.after) == [4])
    }

    @Test("without the lease an acknowledgement waits; with it again it is recorded") func leaseComesBack() {
        var bench = Bench()
        bench.open([("B", 3, 10, 4)])
        bench.machine.write(bench.machine.fetched(Bench.page(after: 4, ids: [10]), channelID: 3, in: bench.world))
        bench.holdsLease = false
        #expect(bench.machine.received(Self.ack(10), in: bench.world).recorded.isEmpty)
        bench.holdsLease = true
        bench.leaseEpoch = 2
        _ = bench.machine.announce(in: bench.world)
        let again = bench.machine.registered(Bench.reply([("B", 3, 10, 4)]), bindNumber: 1, in: bench.world)
        #expect(again.recorded == [10] && again.fetches.isEmpty)
    }

    // MARK: A4

    private func ownership(_ actions: [SessionAction]) -> [Bool] {
        actions.compactMap { if case .open(_, _, _, let claim, _) = $0 { claim != nil } else { nil } }
    }

    @Test("D8: only a bind that the app asked for takes ownership, or every one where the instance says so")
    func requestedBinds() {
        for (isRequested, latestOwns) in [(false, false), (true, false), (false, true)] {
            var bench = Bench([Bench.configuration("B", multiDevice: false)])
            bench.instance.latestConnectionOwns = latestOwns
            let connected = bench.connect { $0.bind.requestedByApp = isRequested }
            #expect(ownership(connected) == [isRequested || latestOwns])
            let opened = bench.machine.registered(Self.reply(owner: true), bindNumber: 1, in: bench.world)
            #expect(opened.sent.contains("ownershipTaken") == isRequested)
        }
    }

    @Test("D16: where owners are checked, ownership moves with the first valid verdict and not before")
    func ownershipAwaitsTheVerdict() {
        var bench = Bench([Bench.configuration("B", multiDevice: false, checks: true)])
        #expect(ownership(bench.connect { $0.bind.requestedByApp = true }) == [false])
        let opened = bench.machine.registered(Self.reply(owner: false), bindNumber: 1, in: bench.world)
        #expect(!opened.sent.contains("ownershipTaken") && opened.opens == 0)
        #expect(ownership(bench.answer(.valid)) == [true])
        // Another device has stored more meanwhile.
        let taken = bench.machine.registered(Self.reply(owner: true, point: 7), bindNumber: 1, in: bench.world)
        #expect(taken.sent.contains("ownershipTaken") && taken.fetches.map(\.after) == [7])
        #expect(ownership(bench.answer(.valid)).isEmpty)
    }

    @Test("D16: a verdict that comes while the bind is being registered takes ownership behind it")
    func verdictBeforeTheRegistration() {
        var bench = Bench([Bench.configuration("B", multiDevice: false, checks: true)])
        bench.connect { $0.bind.requestedByApp = true }
        #expect(ownership(bench.answer(.valid)).isEmpty)
        #expect(
            ownership(bench.machine.registered(Self.reply(owner: false), bindNumber: 1, in: bench.world)) == [true])
    }

    @Test("D16: an invalid session takes no ownership, however often it connects") func invalidTakesNothing() {
        var bench = Bench([Bench.configuration("B", multiDevice: false, checks: true)])
        bench.connect { $0.bind.requestedByApp = true }
        _ = bench.machine.registered(Self.reply(owner: false), bindNumber: 1, in: bench.world)
        #expect(ownership(bench.answer(.invalid)).isEmpty)
        #expect(ownership(bench.machine.announce(in: bench.world)) == [false])
    }

    @Test("D8: a device says that it was given ownership until the store knows a later owner") func givenOwnership() {
        func claims(_ actions: [SessionAction]) -> [Ownership.Claim?] {
            actions.compactMap { if case .open(_, _, _, let claim, _) = $0 { claim } else { nil } }
        }
        var bench = Bench([Bench.configuration("B", multiDevice: false)])
        #expect(claims(bench.connect { $0.bind.ownershipEpoch = 5 }) == [.given(epoch: 5)])
        // A failover has lost the owner: this device is it again, and need not be told.
        let opened = bench.machine.registered(Self.reply(owner: true, epoch: 5), bindNumber: 1, in: bench.world)
        #expect(!opened.sent.contains("ownershipTaken"))
        #expect(claims(bench.machine.announce(in: bench.world)) == [.given(epoch: 5)])
        _ = bench.machine.registered(Self.reply(owner: false, epoch: 9), bindNumber: 1, in: bench.world)
        #expect(claims(bench.machine.announce(in: bench.world)) == [nil])
    }

    @Test("D8: of an answer that is dropped nothing is noted: the device is told with the next one")
    func droppedAnswer() {
        var bench = Bench([Bench.configuration("B", multiDevice: false)])
        bench.connect { $0.bind.requestedByApp = true }
        bench.holdsLease = false
        let dropped = bench.machine.registered(Self.reply(owner: true, epoch: 5), bindNumber: 1, in: bench.world)
        #expect(!dropped.sent.contains("ownershipTaken"))
        bench.holdsLease = true
        bench.now += .seconds(10)
        #expect(ownership(bench.machine.ticked(in: bench.world)) == [true])
        let opened = bench.machine.registered(Self.reply(owner: true, epoch: 5), bindNumber: 1, in: bench.world)
        #expect(opened.sent.contains("ownershipTaken"))
    }

    @Test("D8: whom the store made the owner again reads on where the record is, though it never thought otherwise")
    func becameOwner() {
        var bench = Bench([Bench.configuration("B", multiDevice: false)])
        bench.connect { $0.bind.ownershipEpoch = 5 }
        _ = bench.machine.registered(Self.reply(owner: true, epoch: 5), bindNumber: 1, in: bench.world)
        _ = bench.machine.announce(in: bench.world)
        var reply = Self.reply(owner: true, epoch: 5, point: 8)
        reply.becameOwner = true
        let opened = bench.machine.registered(reply, bindNumber: 1, in: bench.world)
        #expect(opened.fetches.map(\.after) == [8])
    }

    @Test("D16: ownership that a failover lost comes back with the first valid verdict") func givenOwnershipWaits() {
        var bench = Bench([Bench.configuration("B", multiDevice: false, checks: true)])
        #expect(ownership(bench.connect { $0.bind.ownershipEpoch = 5 }) == [false])
        _ = bench.machine.registered(Self.reply(owner: false), bindNumber: 1, in: bench.world)
        #expect(ownership(bench.answer(.valid)) == [true])
    }

    // MARK: A11

    @Test("D16: a report of an unverified session waits for the tenant; without a word it is not recorded")
    func unverifiedReport() {
        var bench = Bench([Bench.configuration("B", checks: true)])
        bench.open([("B", 3, 10, 4)])
        func confirmed(_ actions: [SessionAction]) -> [(id: UInt64?, ids: [Int64])] {
            actions.compactMap { action in
                guard case .confirm(let report) = action else { return nil }
                return (report.id, report.confirmed.values.flatMap { $0 })
            }
        }
        #expect(confirmed(bench.machine.received(Self.report(1, [5]), in: bench.world)).isEmpty)
        let unknown = confirmed(bench.answer(.unknown))
        #expect(unknown.map(\.id) == [nil] && unknown.flatMap(\.ids).isEmpty)
        _ = bench.answer(.valid)
        let valid = confirmed(bench.machine.received(Self.report(2, [5]), in: bench.world))
        #expect(valid.map(\.id) == [2] && valid.flatMap(\.ids) == [5])
        let invalid = bench.answer(.invalid)
        #expect(confirmed(invalid).isEmpty)
        let ended = confirmed(bench.machine.received(Self.report(3, [6]), in: bench.world))
        #expect(ended.map(\.id) == [nil] && ended.flatMap(\.ids).isEmpty)
    }

    @Test("D16: parameters of an unverified session wait for the tenant's word and are refused without it")
    func unverifiedParameters() {
        func bench() -> Bench {
            var configuration = Bench.configuration("B", checks: true)
            configuration.subscription = SubscriptionText(parameters: "max number")
            var bench = Bench([configuration])
            bench.open()
            return bench
        }
        func keep(_ number: UInt32) -> Mss_Device_V1_Packet {
            .with {
                $0.keepParameters.number = number
                $0.keepParameters.bindNumber = 1
                $0.keepParameters.parameters = [
                    .with {
                        $0.bizType = "B"
                        $0.name = "max"
                        $0.value = "3"
                    }
                ]
            }
        }
        var valid = bench()
        let held = valid.machine.received(keep(1), in: valid.world)
        #expect(held.kept.isEmpty && held.keptAnswers.isEmpty)
        #expect(valid.answer(.valid).kept.map(\.number) == [1])
        var invalid = bench()
        _ = invalid.machine.received(keep(1), in: invalid.world)
        #expect(invalid.answer(.invalid).keptAnswers.map(\.refusal) == [.notEligible])
        var silent = bench()
        _ = silent.machine.received(keep(1), in: silent.world)
        #expect(silent.answer(.unknown).keptAnswers.map(\.refusal) == [.tryAgain])
        #expect(silent.machine.received(keep(2), in: silent.world).keptAnswers.map(\.refusal) == [.tryAgain])
    }

    @Test("D16: operations of an unverified session wait for the tenant's word and are refused without it")
    func unverifiedOperations() {
        func submit(_ number: UInt32) -> Mss_Device_V1_Packet {
            .with {
                $0.submitOperations.number = number
                $0.submitOperations.bindNumber = 1
                $0.submitOperations.operations = [.with { $0.operationID = "o" }]
            }
        }
        func submitted(_ actions: [SessionAction]) -> [UInt32] {
            actions.compactMap { if case .submit(let submission) = $0 { submission.number } else { nil } }
        }
        func refusals(_ actions: [SessionAction]) -> [UInt32] {
            actions.flatMap { action -> [UInt32] in
                guard case .answer(let packet) = action else { return [] }
                return packet.operationsTaken.refusals.map(\.code)
            }
        }
        for (verdict, taken, refused) in [
            (Mss_Bus_V1_Verdict.valid, [UInt32(1)], [UInt32]()), (.invalid, [], [401]), (.unknown, [], [503]),
        ] {
            var bench = Bench([Bench.configuration("B", checks: true)])
            bench.open()
            let held = bench.machine.received(submit(1), in: bench.world)
            #expect(submitted(held).isEmpty && refusals(held).isEmpty)
            let answered = bench.answer(verdict)
            #expect(submitted(answered) == taken && refusals(answered) == refused)
        }
    }

    // MARK: B3

    @Test("a connection that learns before its registration that a newer one exists ends with its registration")
    func supersededBeforeItOpens() {
        var older = Bench()
        older.connect()
        #expect(older.machine.superseded(by: 9).isEmpty)
        let answer = older.machine.registered(Bench.reply([], epoch: 8), bindNumber: 1, in: older.world)
        #expect(answer.closeCode == .superseded)
        // It may be itself that supersedes another.
        var newer = Bench()
        newer.connect()
        _ = newer.machine.superseded(by: 9)
        #expect(newer.machine.registered(Bench.reply([], epoch: 9), bindNumber: 1, in: newer.world).closeCode == nil)
    }
}
