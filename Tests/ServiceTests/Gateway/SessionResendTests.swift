import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

/// Oplogs that are sent more than once, and oplogs that must not be sent.
@Suite("Gateway: resends, re-reads, recalls")
struct SessionResendTests {
    private static let instance = Instance(
        id: InstanceID("i"), name: "", isEnabled: true, validatorURL: "", verdictLifetime: .seconds(600))

    /// One connection of user u with channel 1 (Sync ID B), and a clock that the test moves.
    private struct Bench {
        var machine: SessionStateMachine
        var now = ContinuousClock.now
        var wallTime = WallTime(milliseconds: 1_000)
        var isOnline = true
        var kind = SyncModel.ChannelKind.user

        init(
            isSimple: Bool = false, kind: SyncModel.ChannelKind = .user, head: Int64 = 0, reported: Int64 = 0,
            recorded: Int64 = 0, resent: (Int64, UInt32) = (0, 0)
        ) {
            self.kind = kind
            machine = SessionStateMachine(limits: SessionLimits(firstResend: .seconds(10)), now: now)
            var connect = Mss_Device_V1_Packet()
            connect.connect = .with {
                $0.protocolVersion = 1
                $0.instanceID = "i"
                $0.deviceID = "d"
                $0.storeID = "s"
                $0.simple = isSimple
                $0.bind.bindNumber = 1
                $0.bind.userID = "u"
                if reported > 0 {
                    let point = Mss_Device_V1_SyncPoint.with {
                        $0.kind = kind.wire
                        $0.bizType = "B"
                        $0.oplogID = reported
                    }
                    if kind.needsUser { $0.bind.syncPoints = [point] } else { $0.syncPoints = [point] }
                }
            }
            _ = handle(.frame(connect))
            _ = registered(head: head, recorded: recorded, resent: resent)
        }

        @discardableResult
        mutating func handle(_ event: SessionEvent) -> [SessionAction] { machine.handle(event, in: context) }

        /// Lets the second pass on a connection that is not idle.
        mutating func tick() -> [SessionAction] {
            handle(.frame(.with { $0.ping.number = 1 }))
            return handle(.ticked)
        }

        var context: SessionContext {
            let configuration = SyncConfiguration(
                instanceID: SessionResendTests.instance.id, bizType: BizType("B"), description: "", kind: kind,
                isMultiDevice: true, isPersistent: true, repush: .all, checksSession: false, isOnline: isOnline)
            return SessionContext(
                now: now, databaseTime: wallTime, machineTime: wallTime, holdsLease: true,
                control: ControlSnapshot(instances: [SessionResendTests.instance], configurations: [configuration]),
                functions: SessionContext.Functions(random: { 0 }))
        }

        func target(_ instance: String = "i") -> TargetAddress {
            TargetAddress(instanceID: InstanceID(instance), kind: kind, target: kind == .user ? "u" : "")
        }

        mutating func registered(
            head: Int64, recorded: Int64 = 0, resent: (Int64, UInt32) = (0, 0), rereads: [Mss_Bus_V1_Reread] = []
        ) -> [SessionAction] {
            let state = Mss_Bus_V1_ChannelState.with {
                $0.channelID = 1
                $0.target = target().bus
                $0.bizType = "B"
                $0.head = head
                $0.syncPoint = recorded
                $0.resentID = resent.0
                $0.repeats = resent.1
            }
            return handle(
                .registered(
                    .with {
                        $0.connectionEpoch = 7
                        $0.channels = [state]
                        $0.rereads = rereads
                    }, bindNumber: 1))
        }

        mutating func notice(
            _ entries: [Oplog], after: Int64, instance: String = "i", channel: Int64 = 1
        ) -> [SessionAction] {
            let notice = ChannelNotice(
                channelID: channel, address: ChannelAddress(target: target(instance), bizType: BizType("B")),
                after: OplogID(after), upto: entries.last?.id ?? OplogID(after), entries: entries)
            let actions = handle(.noticed(notice))
            return machine.write(actions, at: now)
        }

        mutating func page(_ entries: [Oplog], after: Int64, upto: Int64) -> [SessionAction] {
            handle(
                .fetched(
                    .with {
                        $0.after = after
                        $0.upto = upto
                        $0.entries = entries.map(\.bus)
                    }, channelID: 1))
        }

        mutating func acknowledge(_ upto: Int64) -> [SessionAction] {
            handle(
                .frame(
                    .with {
                        $0.storedAck.channels = [
                            .with {
                                $0.kind = kind.wire
                                $0.bizType = "B"
                                $0.bindNumber = kind.needsUser ? 1 : 0
                                $0.upto = upto
                            }
                        ]
                    }))
        }
    }

    private static func oplog(_ id: Int64, recalls: Int64 = 0, until: Int64 = 1_000_000_000) -> Oplog {
        Oplog(
            id: OplogID(id), thirdMessageID: ThirdMessageID("\(id)"), payload: recalls > 0 ? [] : [1], isBinary: false,
            targeting: .everyone, validUntil: WallTime(milliseconds: until), createdAt: WallTime(milliseconds: 0),
            isPersistent: true, recalls: recalls > 0 ? OplogID(recalls) : nil)
    }

    private func pushed(_ actions: [SessionAction]) -> [Mss_Device_V1_ChannelBatch] {
        actions.compactMap { if case .push(let batch, _, _) = $0 { batch } else { nil } }
    }

    private func ids(_ actions: [SessionAction]) -> [Int64] { pushed(actions).flatMap(\.entries).map(\.oplogID) }

    private func fetches(_ actions: [SessionAction]) -> Int {
        actions.count { if case .fetch = $0 { true } else { false } }
    }

    @Test("a notice of another instance or user is dropped, with any Sync ID and ids")
    func otherInstances() {
        var bench = Bench(kind: .globalDevice)
        #expect(bench.notice([Self.oplog(1)], after: 0, instance: "j", channel: 2).isEmpty)
        #expect(bench.notice([Self.oplog(2, recalls: 1)], after: 1, instance: "j", channel: 2).isEmpty)
        // The first oplog of this channel has the id that the tombstone of the other channel named.
        _ = bench.registered(head: 1)
        #expect(ids(bench.page([Self.oplog(1)], after: 0, upto: 1)) == [1])
    }

    @Test("H7: a device with the original gets the tombstone, in order; any other device gets neither")
    func tombstones() {
        var has = Bench()
        #expect(ids(has.notice([Self.oplog(1), Self.oplog(2)], after: 0)) == [1, 2])
        #expect(ids(has.notice([Self.oplog(3, recalls: 1)], after: 2)) == [3])
        var lacks = Bench(head: 3)
        #expect(ids(lacks.page([Self.oplog(2), Self.oplog(3, recalls: 1)], after: 0, upto: 3)) == [2])
        var reconnects = Bench(head: 3, reported: 1)
        #expect(ids(reconnects.page([Self.oplog(2), Self.oplog(3, recalls: 1)], after: 1, upto: 3)) == [2, 3])
        // An MQTT client reports no position, so the stored sync point counts.
        var simple = Bench(isSimple: true, head: 3, recorded: 1)
        #expect(ids(simple.page([Self.oplog(2), Self.oplog(3, recalls: 1)], after: 1, upto: 3)) == [2, 3])
    }

    @Test("H7: an older page or notice that arrives after the recall does not bring the original")
    func lateOriginal() {
        var bench = Bench(head: 1)
        // The tombstone arrives before the page with the recalled oplog.
        #expect(ids(bench.notice([Self.oplog(2, recalls: 1)], after: 1)).isEmpty)
        #expect(ids(bench.page([Self.oplog(1)], after: 0, upto: 1)).isEmpty)
        #expect(ids(bench.page([Self.oplog(2, recalls: 1)], after: 1, upto: 2)).isEmpty)
        // The tombstone is the first notice of a channel that the session does not know.
        var fresh = Bench()
        _ = fresh.notice([Self.oplog(2, recalls: 1)], after: 1)
        #expect(ids(fresh.notice([Self.oplog(1)], after: 0)).isEmpty)
    }

    @Test("a store that has less than its notice is read again after a moment, not at once")
    func lostCommits() {
        var bench = Bench(head: 9)
        #expect(fetches(bench.page([], after: 0, upto: 0)) == 0)
        bench.now += .seconds(1)
        #expect(fetches(bench.tick()) == 1)
    }

    @Test("D14: a simple client's ladder: seven attempts, each count recorded before, then a dead letter")
    func simpleLadder() {
        var bench = Bench(isSimple: true)
        #expect(pushed(bench.notice([Self.oplog(1), Self.oplog(2)], after: 0))[0].entries.map(\.attempt) == [0, 0])
        #expect(ids(bench.notice([Self.oplog(3)], after: 2)) == [3], "later ones do not wait")
        var waits: [Int] = []
        for repeats in 1...6 {
            var seconds = 0
            var due: [SessionAction] = []
            while due.isEmpty, seconds < 1_000 {
                bench.now += .seconds(1)
                seconds += 1
                due = bench.tick()
            }
            waits.append(seconds)
            guard case .recordResend(1, _, let oplogID, repeats)? = due.first else {
                Issue.record("no record of repeat \(repeats): \(due)")
                return
            }
            #expect(pushed(due).isEmpty && oplogID == OplogID(1))
            let sent = bench.handle(.resendRecorded(channelID: 1, oplogID: oplogID, repeats: repeats))
            #expect(pushed(sent)[0].entries.map(\.attempt) == [UInt32(repeats + 1), UInt32(repeats + 1)])
        }
        #expect(waits == [10, 20, 40, 80, 160, 320])
        bench.now += .seconds(320)
        let end = bench.tick()
        #expect(end.contains { if case .gaveUp([OplogID(1), OplogID(2)], 7, 1) = $0 { true } else { false } })
        #expect(end.contains { if case .record(1, _, _, OplogID(2)) = $0 { true } else { false } })
        // The next batch has a ladder of its own.
        bench.now += .seconds(10)
        let next = bench.tick()
        #expect(next.contains { if case .recordResend(1, _, OplogID(3), 1) = $0 { true } else { false } })
    }

    @Test("D14: a simple client's count continues from the record; an acknowledgement ends it")
    func simpleReconnect() {
        var bench = Bench(isSimple: true)
        _ = bench.registered(head: 0, resent: (1, 4))
        var resumed = Bench(isSimple: true, head: 0, resent: (1, 4))
        _ = resumed.registered(head: 0, resent: (1, 4))
        #expect(pushed(resumed.notice([Self.oplog(1)], after: 0))[0].entries.map(\.attempt) == [5])
        let actions = resumed.acknowledge(1)
        #expect(
            actions.contains {
                if case .confirm(let report) = $0 { report.id == nil && report.confirmed == [1: [1]] } else { false }
            })
        resumed.now += .seconds(10_000)
        #expect(resumed.tick().isEmpty)
    }

    @Test("D11, H7: expired and recalled oplogs are not resent; their batch still moves the position")
    func staleResends() {
        var bench = Bench(isSimple: true)
        _ = bench.notice([Self.oplog(1), Self.oplog(2, until: 1_500), Self.oplog(3)], after: 0)
        _ = bench.notice([Self.oplog(4, recalls: 3)], after: 3)
        bench.now += .seconds(10)
        bench.wallTime = WallTime(milliseconds: 2_000)
        _ = bench.tick()
        let sent = bench.handle(.resendRecorded(channelID: 1, oplogID: OplogID(1), repeats: 1))
        #expect(ids(sent) == [1] && pushed(sent)[0].upto == 3)
    }

    private static func reread(_ number: Int64, of id: Int64) -> Mss_Bus_V1_Reread {
        .with {
            $0.rereadID = number
            $0.channelID = 1
            $0.oplog = oplog(id).bus
        }
    }

    @Test("D3: a re-read is sent once on a connection, waits for its obstacles, and ends when acknowledged")
    func rereads() {
        var bench = Bench(head: 5, reported: 5)
        bench.isOnline = false
        #expect(ids(bench.registered(head: 5, rereads: [Self.reread(1, of: 3)])).isEmpty)
        bench.isOnline = true
        let sent = bench.handle(.contextChanged)
        #expect(pushed(sent).map(\.reread) == [1] && ids(sent) == [3])
        #expect(ids(bench.registered(head: 5, rereads: [Self.reread(1, of: 3)])).isEmpty, "under way")
        let done = bench.handle(.frame(.with { $0.storedAck.rereads = [1, 99] }))
        #expect(done.count { if case .finishReread(1) = $0 { true } else { false } } == 1)
        #expect(!done.contains { if case .finishReread(99) = $0 { true } else { false } })
        #expect(ids(bench.registered(head: 5, rereads: [Self.reread(1, of: 3)])).isEmpty, "not yet noted as done")
    }

    @Test("D3: a full list of re-reads causes a request for more; a recall removes one from it")
    func manyRereads() {
        var bench = Bench(head: 100, reported: 100)
        let list = (1...Int64(SessionRereads.listMax)).map { Self.reread($0, of: $0) }
        _ = bench.handle(.registrationDue)
        _ = bench.notice([Self.oplog(101, recalls: 2)], after: 100)
        let sent = bench.registered(head: 101, rereads: list)
        #expect(!ids(sent).contains(2) && pushed(sent).count { $0.reread > 0 } == SessionRereads.listMax - 1)
        let done = bench.handle(.frame(.with { $0.storedAck.rereads = list.map { UInt64($0.rereadID) } }))
        #expect(done.contains { if case .open = $0 { true } else { false } })
    }

    @Test("H4: a verdict that arrives before the registration's reply is stored after it")
    func earlyVerdict() {
        var bench = Bench()
        _ = bench.handle(.registrationDue)
        let early = bench.handle(.validated(.with { $0.verdict = .valid }, bindNumber: 1, askedAt: bench.now))
        func storedVerdicts(_ actions: [SessionAction]) -> [Duration] {
            actions.compactMap { if case .update(_, 7, let verdict) = $0 { verdict } else { nil } }
        }
        #expect(storedVerdicts(early).isEmpty)
        #expect(storedVerdicts(bench.registered(head: 0)) == [.seconds(600)])
        #expect(storedVerdicts(bench.registered(head: 0)).isEmpty, "once")
    }

    @Test("a change during a registration causes another registration")
    func announceAgain() {
        var bench = Bench()
        _ = bench.handle(.registrationDue)
        #expect(bench.handle(.registrationDue).isEmpty)
        #expect(bench.registered(head: 0).contains { if case .open = $0 { true } else { false } })
        #expect(!bench.registered(head: 0).contains { if case .open = $0 { true } else { false } })
    }
}
