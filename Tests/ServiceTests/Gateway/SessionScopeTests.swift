import BusMessages
import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

private typealias Bench = SessionBench

@Suite("A device session, after a configuration's push scope was changed")
struct SessionScopeTests {
    typealias Kind = SyncModel.ChannelKind

    /// Opens a session of user u with one channel, whose configuration now has another scope or target.
    private static func open(
        _ kind: Kind, under configuration: SyncConfiguration, acknowledged: Int64 = 0,
        _ more: (inout Mss_Device_V1_Connect) -> Void = { _ in }
    ) -> (bench: SessionBench, actions: [SessionAction]) {
        var bench = Bench([configuration])
        bench.connect(more)
        var reply = Bench.reply([("B", 3, 10, 4)])
        let name = kind.isGlobal ? "" : kind.needsUser ? "u" : "d"
        reply.channels[0].target = TargetAddress(instanceID: Bench.instance.id, kind: kind, target: name).bus
        reply.channels[0].acknowledged = acknowledged
        let actions = bench.handle(.registered(reply, bindNumber: 1))
        return (bench, actions)
    }

    private static let pairs: [(stored: Kind, present: Kind)] = [
        (.user, .globalUser), (.globalUser, .user), (.device, .globalDevice), (.globalDevice, .device),
    ]

    @Test("C4: oplogs of the former scope are still sent", arguments: pairs)
    func former(stored: Kind, present: Kind) {
        let configuration = Bench.configuration("B", kind: present, multiDevice: present.needsUser)
        var (bench, opened) = Self.open(stored, under: configuration)
        #expect(opened.fetches.map(\.after) == [4])
        let page = bench.handle(.fetched(Bench.page(after: 4, ids: [5, 10]), channelID: 3))
        #expect(page.pushed == [5, 10] && page.batches.first?.kind == stored.wire)
        bench.machine.write(page)
        let acknowledged = bench.receive { packet in
            packet.storedAck.channels = [
                .with {
                    $0.kind = stored.wire
                    $0.bizType = "B"
                    $0.bindNumber = stored.needsUser ? 1 : 0
                    $0.upto = 10
                }
            ]
        }
        let receivers = acknowledged.compactMap {
            if case .record(_, let receiver, _, _) = $0 { receiver } else { nil }
        }
        #expect(receivers.map { $0.storeID != nil } == [stored != .device], "whose sync point it is stays as it was")
    }

    @Test("C4: global data of a configuration that is now single-device goes to every device of every user")
    func globalUnderSingleDevice() {
        var (bench, opened) = Self.open(.globalUser, under: Bench.configuration("B", multiDevice: false))
        #expect(opened.fetches.map(\.after) == [4], "the device owns no user")
        #expect(bench.handle(.fetched(Bench.page(after: 4, ids: [10]), channelID: 3)).pushed == [10])
    }

    @Test("C4: data of a configuration that was deleted and made again for another target is not sent")
    func otherTarget() {
        for (stored, present) in [(Kind.user, Kind.device), (.globalDevice, .user), (.device, .globalUser)] {
            let configuration = Bench.configuration("B", kind: present, multiDevice: present.needsUser)
            #expect(Self.open(stored, under: configuration).actions.fetches.isEmpty)
        }
    }

    @Test("C4: a summary's page has both channels of a Sync ID, with any requested count") func summary() {
        var bench = Bench([Bench.configuration("A"), Bench.configuration("B", kind: .globalUser)])
        bench.connect()
        var reply = Bench.reply([("A", 1, 5, 5), ("B", 2, 5, 5), ("B", 3, 5, 5)])
        reply.channels[2].target = TargetAddress(instanceID: Bench.instance.id, kind: .globalUser, target: "").bus
        _ = bench.handle(.registered(reply, bindNumber: 1))
        func ask(_ number: UInt32, after bizType: String, count: UInt32) -> [Int64] {
            bench.receive {
                $0.summaryRequest.requestNumber = number
                $0.summaryRequest.bindNumber = 1
                $0.summaryRequest.afterBizType = bizType
                $0.summaryRequest.count = count
            }.summaryReads.flatMap { $0.channels.map(\.channelID) }
        }
        #expect(ask(1, after: "", count: 1) == [1])
        #expect(ask(2, after: "A", count: 1) == [2, 3])
        #expect(ask(3, after: "", count: 2) == [1, 2, 3])
    }

    // MARK: Whose position counts

    /// A reported position in the user's channel.
    private static func claim(_ id: Int64) -> (inout Mss_Device_V1_Connect) -> Void {
        { connect in
            connect.bind.syncPoints = [
                .with {
                    $0.bizType = "B"
                    $0.oplogID = id
                }
            ]
        }
    }

    @Test("D7: a store that reports less than it acknowledged gets the missing data again, with a mark")
    func olderStore() {
        var (bench, opened) = Self.open(.user, under: Bench.configuration("B"), acknowledged: 4, Self.claim(2))
        #expect(opened.fetches.map(\.after) == [2])
        let page = bench.handle(.fetched(Bench.page(after: 2, ids: [3, 4, 5]), channelID: 3))
        #expect(page.pushed == [3, 4, 5] && page.batches.map(\.againUpto) == [4] && page.batches.map(\.after) == [2])
        let rest = bench.handle(.fetched(Bench.page(after: 5, ids: [10]), channelID: 3))
        #expect(rest.batches.map(\.againUpto) == [0], "it never had this")
    }

    @Test("D7: an older store without any position begins at 0")
    func olderStoreWithoutPosition() {
        #expect(Self.open(.user, under: Bench.configuration("B"), acknowledged: 4).actions.fetches.map(\.after) == [0])
    }

    @Test("D12: skipped oplogs do not come again to a store that never received their range")
    func passedOver() {
        let opened = Self.open(.user, under: Bench.configuration("B"), acknowledged: 2, Self.claim(2)).actions
        #expect(opened.fetches.map(\.after) == [4])
    }

    @Test("D8, D9, D13: the server's sync point counts for a single-device or device channel, and for a simple device")
    func serversPosition() {
        let single = Bench.configuration("B", multiDevice: false)
        var bench = Bench([single])
        var reply = Bench.reply([("B", 3, 10, 4)])
        reply.owner = true
        reply.channels[0].acknowledged = 4
        bench.connect(Self.claim(2))
        #expect(bench.handle(.registered(reply, bindNumber: 1)).fetches.map(\.after) == [4])
        let device = Bench.configuration("B", kind: .device, multiDevice: false)
        #expect(Self.open(.device, under: device, acknowledged: 4).actions.fetches.map(\.after) == [4])
        let simple = Self.open(.user, under: Bench.configuration("B"), acknowledged: 4) { $0.simple = true }
        #expect(simple.actions.fetches.map(\.after) == [4])
    }

    @Test("a sync point is recorded with the part of it that the device itself acknowledged")
    func acknowledgedPart() {
        var (bench, _) = Self.open(.user, under: Bench.configuration("B"), acknowledged: 4, Self.claim(4))
        let page = bench.handle(.fetched(Bench.page(after: 4, ids: [5, 10]), channelID: 3))
        bench.machine.write(page)
        let skipped = bench.handle(
            .noticed(
                Bench.notice("B", channel: 3, after: 10, ids: [11], targeting: Targeting(operatingSystem: .android))))
        #expect(skipped.recorded.isEmpty)
        let actions = bench.receive { packet in
            packet.storedAck.channels = [
                .with {
                    $0.bizType = "B"
                    $0.bindNumber = 1
                    $0.upto = 10
                }
            ]
        }
        let records = actions.compactMap { action -> [Int64]? in
            if case .record(_, _, let acknowledged, let upto) = action {
                [acknowledged.value, upto.value]
            } else {
                nil
            }
        }
        #expect(records == [[10, 11]])
    }

    @Test("D15: each user of a shared device has a sync point of their own in global data for users")
    func sharedDevice() {
        var (bench, _) = Self.open(.globalUser, under: Bench.configuration("B", kind: .globalUser))
        let page = bench.handle(.fetched(Bench.page(after: 4, ids: [10]), channelID: 3))
        bench.machine.write(page)
        let actions = bench.receive { packet in
            packet.storedAck.channels = [
                .with {
                    $0.kind = .globalUser
                    $0.bizType = "B"
                    $0.bindNumber = 1
                    $0.upto = 10
                }
            ]
        }
        let users = actions.compactMap { if case .record(_, let receiver, _, _) = $0 { receiver.userID } else { nil } }
        #expect(users == [UserID("u")])
    }
}
