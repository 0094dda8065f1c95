import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

private typealias Bench = SessionBench

@Suite("Writes that concern a user need the eligibility of a hand-out (D8, D16)") struct SessionWriteTests {
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

    @Test("D8: a reported position does not move the one sync point of a user, of the owner either")
    func claimedPosition() {
        for isOwner in [false, true] {
            var bench = Bench([Bench.configuration("B", multiDevice: false)])
            bench.connect { $0.bind.syncPoints = [Self.point(Self.claimed)] }
            let opened = bench.handle(.registered(Self.reply(owner: isOwner), bindNumber: 1))
            #expect(opened.recorded.isEmpty)
            #expect(opened.fetches.map(\.after) == (isOwner ? [4] : []))
            let acknowledged = bench.handle(.frame(Self.ack(Self.claimed)))
            #expect(acknowledged.recorded.isEmpty, "nothing was sent that it could acknowledge")
        }
    }

    @Test("D8: the owner moves the one sync point over sent and skipped oplogs") func ownerAcknowledges() {
        var bench = Bench([Bench.configuration("B", multiDevice: false)])
        bench.connect { $0.bind.syncPoints = [Self.point(7)] }
        _ = bench.handle(.registered(Self.reply(owner: true), bindNumber: 1))
        let sent = bench.handle(.fetched(Bench.page(after: 4, ids: [6, 10]), channelID: 3))
        #expect(sent.batches.map(\.after) == [4], "the device drops what it has, and acknowledges it")
        bench.machine.write(sent)
        #expect(bench.handle(.frame(Self.ack(Self.claimed))).recorded == [10])
        var skipped = Bench.page(after: 10, ids: [])
        skipped.upto = 12
        _ = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 11, ids: [12])))
        #expect(bench.handle(.fetched(skipped, channelID: 3)).recorded == [12])
    }

    @Test("D8: a former owner no longer moves the sync point, also for data that it was sent") func formerOwner() {
        var bench = Bench([Bench.configuration("B", multiDevice: false)])
        bench.connect()
        _ = bench.handle(.registered(Self.reply(owner: true), bindNumber: 1))
        bench.machine.write(bench.handle(.fetched(Bench.page(after: 4, ids: [10]), channelID: 3)))
        let lost = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 10, ids: [11], owner: "e")))
        #expect(lost.opens == 1, "the store is asked: the notice may be of before")
        #expect(bench.handle(.frame(Self.ack(10))).recorded.isEmpty)
        let told = bench.handle(.registered(Self.reply(owner: false, head: 11), bindNumber: 1))
        #expect(told.recorded.isEmpty && told.fetches.isEmpty)
    }

    @Test("D8: a notice from before the device became the owner does not withhold its data") func staleNotice() {
        var bench = Bench([Bench.configuration("B", multiDevice: false)])
        bench.connect()
        _ = bench.handle(.registered(Self.reply(owner: true), bindNumber: 1))
        _ = bench.handle(.noticed(Bench.notice("B", channel: 3, after: 9, ids: [10], owner: "e")))
        let told = bench.handle(.registered(Self.reply(owner: true), bindNumber: 1))
        #expect(told.fetches.isEmpty, "the page that was asked for is still on its way")
        #expect(bench.handle(.fetched(Bench.page(after: 4, ids: [10]), channelID: 3)).pushed == [10])
    }

    @Test("D7: a store's reported position counts when the verdict is valid")
    func claimOfAStore() {
        var bench = Bench([Bench.configuration("B", checks: true)])
        bench.connect { $0.bind.syncPoints = [Self.point(8)] }
        #expect(
            bench.handle(.registered(Self.reply(owner: false), bindNumber: 1)).recorded.isEmpty,
            "a later change to one sync point would begin at the highest on record")
        let valid = bench.answer(.valid)
        #expect(valid.recorded == [8] && valid.fetches.map(\.after) == [8])
    }

    @Test("D17: a channel that becomes single-device is read again; the reported position no longer counts")
    func becomesSingleDevice() {
        var bench = Bench([Bench.configuration("B")])
        bench.holdsLease = true
        bench.connect { $0.bind.syncPoints = [Self.point(Self.claimed)] }
        _ = bench.handle(.registered(Self.reply(owner: true, head: 10, point: 10), bindNumber: 1))
        bench.configurations[BizType("B")] = Bench.configuration("B", multiDevice: false)
        #expect(bench.handle(.contextChanged).opens == 1)
        let told = bench.handle(.registered(Self.reply(owner: true, point: 4), bindNumber: 1))
        #expect(told.recorded.isEmpty && told.fetches.map(\.after) == [4])
    }

    @Test("without the lease an acknowledgement waits; with it again it is recorded") func leaseComesBack() {
        var bench = Bench()
        bench.open([("B", 3, 10, 4)])
        bench.machine.write(bench.handle(.fetched(Bench.page(after: 4, ids: [10]), channelID: 3)))
        bench.holdsLease = false
        #expect(bench.handle(.frame(Self.ack(10))).recorded.isEmpty)
        bench.holdsLease = true
        bench.leaseEpoch = 2
        _ = bench.handle(.registrationDue)
        let again = bench.handle(.registered(Bench.reply([("B", 3, 10, 4)]), bindNumber: 1))
        #expect(again.recorded == [10] && again.fetches.isEmpty)
    }

    // MARK: A4

    private func ownership(_ actions: [SessionAction]) -> [Bool] {
        actions.compactMap { if case .open(_, _, _, let claim, _) = $0 { claim != nil } else { nil } }
    }

    @Test("D8: only a bind that the app requested takes ownership, unless the instance allows every bind")
    func requestedBinds() {
        for (isRequested, latestOwns) in [(false, false), (true, false), (false, true)] {
            var bench = Bench([Bench.configuration("B", multiDevice: false)])
            bench.instance.latestConnectionOwns = latestOwns
            let connected = bench.connect { $0.bind.requestedByApp = isRequested }
            #expect(ownership(connected) == [isRequested || latestOwns])
            let opened = bench.handle(.registered(Self.reply(owner: true), bindNumber: 1))
            #expect(opened.sent.contains("ownershipTaken") == isRequested)
        }
    }

    @Test("D16: where owners are checked, ownership moves with the first valid verdict and not before")
    func ownershipAwaitsTheVerdict() {
        var bench = Bench([Bench.configuration("B", multiDevice: false, checks: true)])
        #expect(ownership(bench.connect { $0.bind.requestedByApp = true }) == [false])
        let opened = bench.handle(.registered(Self.reply(owner: false), bindNumber: 1))
        #expect(!opened.sent.contains("ownershipTaken") && opened.opens == 0)
        #expect(ownership(bench.answer(.valid)) == [true])
        // Another device has stored more meanwhile.
        let taken = bench.handle(.registered(Self.reply(owner: true, point: 7), bindNumber: 1))
        #expect(taken.sent.contains("ownershipTaken") && taken.fetches.map(\.after) == [7])
        #expect(ownership(bench.answer(.valid)).isEmpty)
    }

    @Test("D16: a verdict that arrives during the registration takes ownership after it")
    func verdictBeforeTheRegistration() {
        var bench = Bench([Bench.configuration("B", multiDevice: false, checks: true)])
        bench.connect { $0.bind.requestedByApp = true }
        #expect(ownership(bench.answer(.valid)).isEmpty)
        #expect(
            ownership(bench.handle(.registered(Self.reply(owner: false), bindNumber: 1))) == [true])
    }

    @Test("D16: an invalid session takes no ownership, also after many connects") func invalidTakesNothing() {
        var bench = Bench([Bench.configuration("B", multiDevice: false, checks: true)])
        bench.connect { $0.bind.requestedByApp = true }
        _ = bench.handle(.registered(Self.reply(owner: false), bindNumber: 1))
        #expect(ownership(bench.answer(.invalid)).isEmpty)
        #expect(ownership(bench.handle(.registrationDue)) == [false])
    }

    @Test("D8: a device names its ownership epoch until the store knows a later owner") func givenOwnership() {
        func claims(_ actions: [SessionAction]) -> [Ownership.Claim?] {
            actions.compactMap { if case .open(_, _, _, let claim, _) = $0 { claim } else { nil } }
        }
        var bench = Bench([Bench.configuration("B", multiDevice: false)])
        #expect(claims(bench.connect { $0.bind.ownershipEpoch = 5 }) == [.given(epoch: 5)])
        // A failover has lost the owner. The device becomes the owner again, without a new message.
        let opened = bench.handle(.registered(Self.reply(owner: true, epoch: 5), bindNumber: 1))
        #expect(!opened.sent.contains("ownershipTaken"))
        #expect(claims(bench.handle(.registrationDue)) == [.given(epoch: 5)])
        _ = bench.handle(.registered(Self.reply(owner: false, epoch: 9), bindNumber: 1))
        #expect(claims(bench.handle(.registrationDue)) == [nil])
    }

    @Test("D8: a dropped reply changes nothing: the next one notifies the device")
    func droppedAnswer() {
        var bench = Bench([Bench.configuration("B", multiDevice: false)])
        bench.connect { $0.bind.requestedByApp = true }
        bench.holdsLease = false
        let dropped = bench.handle(.registered(Self.reply(owner: true, epoch: 5), bindNumber: 1))
        #expect(!dropped.sent.contains("ownershipTaken"))
        bench.holdsLease = true
        bench.now += .seconds(10)
        #expect(ownership(bench.handle(.ticked)) == [true])
        let opened = bench.handle(.registered(Self.reply(owner: true, epoch: 5), bindNumber: 1))
        #expect(opened.sent.contains("ownershipTaken"))
    }

    @Test("D8: a device that becomes the owner again reads on from the record")
    func becameOwner() {
        var bench = Bench([Bench.configuration("B", multiDevice: false)])
        bench.connect { $0.bind.ownershipEpoch = 5 }
        _ = bench.handle(.registered(Self.reply(owner: true, epoch: 5), bindNumber: 1))
        _ = bench.handle(.registrationDue)
        var reply = Self.reply(owner: true, epoch: 5, point: 8)
        reply.becameOwner = true
        let opened = bench.handle(.registered(reply, bindNumber: 1))
        #expect(opened.fetches.map(\.after) == [8])
    }

    @Test("D16: ownership that a failover lost comes back with the first valid verdict") func givenOwnershipWaits() {
        var bench = Bench([Bench.configuration("B", multiDevice: false, checks: true)])
        #expect(ownership(bench.connect { $0.bind.ownershipEpoch = 5 }) == [false])
        _ = bench.handle(.registered(Self.reply(owner: false), bindNumber: 1))
        #expect(ownership(bench.answer(.valid)) == [true])
    }

    // MARK: A11

    @Test("D16: a report of an unverified session waits for the verdict and is not recorded without it")
    func unverifiedReport() {
        var bench = Bench([Bench.configuration("B", checks: true)])
        bench.open([("B", 3, 10, 4)])
        func confirmed(_ actions: [SessionAction]) -> [(id: UInt64?, ids: [Int64])] {
            actions.compactMap { action in
                guard case .confirm(let report) = action else { return nil }
                return (report.id, report.confirmed.values.flatMap { $0 })
            }
        }
        #expect(confirmed(bench.handle(.frame(Self.report(1, [5])))).isEmpty)
        let unknown = confirmed(bench.answer(.unknown))
        #expect(unknown.map(\.id) == [nil] && unknown.flatMap(\.ids).isEmpty)
        _ = bench.answer(.valid)
        let valid = confirmed(bench.handle(.frame(Self.report(2, [5]))))
        #expect(valid.map(\.id) == [2] && valid.flatMap(\.ids) == [5])
        let invalid = bench.answer(.invalid)
        #expect(confirmed(invalid).isEmpty)
        let ended = confirmed(bench.handle(.frame(Self.report(3, [6]))))
        #expect(ended.map(\.id) == [nil] && ended.flatMap(\.ids).isEmpty)
    }

    @Test("D16: parameters of an unverified session wait for the verdict and are refused without it")
    func unverifiedParameters() {
        func bench() -> Bench {
            var configuration = Bench.configuration("B", checks: true)
            configuration.subscription = SubscriptionText(parameters: "max number")
            var bench = Bench([configuration])
            bench.open()
            return bench
        }
        func parameterFrame(_ number: UInt32) -> Mss_Device_V1_Packet {
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
        let held = valid.handle(.frame(parameterFrame(1)))
        #expect(held.kept.isEmpty && held.keptAnswers.isEmpty)
        #expect(valid.answer(.valid).kept.map(\.number) == [1])
        var invalid = bench()
        _ = invalid.handle(.frame(parameterFrame(1)))
        #expect(invalid.answer(.invalid).keptAnswers.map(\.refusal) == [.notEligible])
        var silent = bench()
        _ = silent.handle(.frame(parameterFrame(1)))
        #expect(silent.answer(.unknown).keptAnswers.map(\.refusal) == [.tryAgain])
        #expect(
            silent.handle(.frame(parameterFrame(2))).keptAnswers.map(\.refusal) == [.tryAgain])
    }

    @Test("D16: operations of an unverified session wait for the verdict and are refused without it")
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
            let held = bench.handle(.frame(submit(1)))
            #expect(submitted(held).isEmpty && refusals(held).isEmpty)
            let answered = bench.answer(verdict)
            #expect(submitted(answered) == taken && refusals(answered) == refused)
        }
    }

    // MARK: B3

    @Test("a connection that knows a newer one before its registration ends with the registration")
    func supersededBeforeItOpens() {
        var older = Bench()
        older.connect()
        #expect(older.handle(.superseded(by: 9)).isEmpty)
        let answer = older.handle(.registered(Bench.reply([], epoch: 8), bindNumber: 1))
        #expect(answer.closeCode == .superseded)
        // The notice can name this connection itself, when it supersedes an older one.
        var newer = Bench()
        newer.connect()
        _ = newer.handle(.superseded(by: 9))
        #expect(newer.handle(.registered(Bench.reply([], epoch: 9), bindNumber: 1)).closeCode == nil)
    }
}
