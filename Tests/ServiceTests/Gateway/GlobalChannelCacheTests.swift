import BusMessages
import DeliveryHistory
import SwiftProtobuf
import SyncModel
import Synchronization
import TestSupport
import Testing

@testable import Gateway

@Suite("The tail of a global channel")
struct GlobalChannelCacheTests {
    private static let now = WallTime(milliseconds: 10)
    private static let time: @Sendable () -> WallTime = { now }
    private static let phone = DeviceTraits(operatingSystem: .iOS, appVersion: "1", slot: DeviceSlot(number: 0))

    private static func oplog(
        _ id: Int64, system: SyncModel.OperatingSystem? = nil, share: DeviceShare = .everyone, until: Int64 = 100
    ) -> Oplog {
        Oplog(
            id: OplogID(id), thirdMessageID: ThirdMessageID("\(id)"), payload: [1], isBinary: false,
            targeting: Targeting(operatingSystem: system, share: share), validUntil: WallTime(milliseconds: until),
            createdAt: WallTime(milliseconds: 0), isPersistent: true)
    }

    private static func request(
        after: Int64, head: Int64, newest: Int = 0, newestUpto: Int64? = nil
    ) -> PageRequest {
        PageRequest(
            channelID: 1, isGlobal: true, after: OplogID(after), head: OplogID(head), newest: newest,
            newestUpto: OplogID(newestUpto ?? head), traits: phone)
    }

    @Test("it answers as the store would, or not at all: random channels, requests and thresholds")
    func asTheStore() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<2_000 {
            let all = (1...Int64.random(in: 1...400, using: &generator)).map { id in
                Self.oplog(
                    id, system: [nil, .iOS, .android][Int.random(in: 0..<3, using: &generator)],
                    share: DeviceShare(start: Int.random(in: 0...1, using: &generator), size: 5_000),
                    until: Bool.random(using: &generator) ? 100 : 5)
            }
            let head = all.count
            var tail = GlobalChannelCache(from: .zero)
            tail.add(all.filter { $0.validUntil > Self.now }, upto: OplogID(Int64(head)))
            let after = Int64.random(in: 0...Int64(head), using: &generator)
            let newest = [0, 1, 10, 100][Int.random(in: 0..<4, using: &generator)]
            let opening = Int64.random(in: after...Int64(head), using: &generator)
            let request = Self.request(after: after, head: Int64(head), newest: newest, newestUpto: opening)
            guard let page = tail.page(for: request, now: Self.now) else {
                #expect(head > GlobalChannelCache.entriesMax, "seed \(seed)")
                continue
            }
            let valid = all.filter { $0.id.value > after && $0.validUntil > Self.now }
            var start = after
            let matching = valid.filter { $0.id.value <= opening && $0.targeting.exclusion(of: Self.phone) == nil }
            if newest > 0, matching.count > newest { start = matching[matching.count - newest - 1].id.value }
            let expected = valid.filter { $0.id.value > start }.prefix(Limits.fetchPageOplogs).map(\.id.value)
            #expect(page.entries.map(\.id) == Array(expected), "seed \(seed)")
            let isFull = expected.count == Limits.fetchPageOplogs
            #expect(page.upto == (isFull ? expected.last : Int64(head)) && page.discardedUpto == start, "seed \(seed)")
        }
    }

    @Test("H7: an oplog that a later page's tombstone recalls is no longer sent")
    func recalledByPage() {
        var tail = GlobalChannelCache(from: .zero)
        tail.add([Self.oplog(1), Self.oplog(2)], upto: OplogID(2))
        var tombstone = Self.oplog(3)
        tombstone.recalls = OplogID(1)
        tail.add([tombstone], upto: OplogID(3))
        let page = tail.page(for: Self.request(after: 0, head: 3), now: Self.now)
        #expect(page?.entries.map(\.id) == [2, 3])
    }

    @Test("H7: a threshold discards no tombstones for a device with data; nor does the tail")
    func tombstones() {
        var tail = GlobalChannelCache(from: OplogID(10))
        var tombstone = Self.oplog(12)
        tombstone.recalls = OplogID(11)
        tail.add([tombstone, Self.oplog(13), Self.oplog(14), Self.oplog(15)], upto: OplogID(15))
        func ids(after: Int64) -> [Int64]? {
            tail.page(for: Self.request(after: after, head: 15, newest: 2), now: Self.now)?.entries.map(\.id)
        }
        #expect(ids(after: 11) == [12, 14, 15])
        #expect(ids(after: 5) == nil, "there may be tombstones below the tail: the store knows")
        #expect(ids(after: 0) == [12, 14, 15], "a new device has nothing that could be taken back")
    }

    @Test("a channel with new oplogs is read once for all waiting sessions, then answered from memory")
    func oneRead() {
        let reads = Mutex<[@Sendable (Mss_Bus_V1_FetchReply?) -> Void]>([])
        let answers = Mutex<[[Int64]?]>([])
        let tails = GlobalChannelCaches(time: Self.time) { _, _, _, answer in reads.withLock { $0.append(answer) } }
        func ask(head: Int64) {
            tails.page(for: Self.request(after: 0, head: head, newest: 2)) { page in
                answers.withLock { $0.append(page?.entries.map(\.id)) }
            }
        }
        for _ in 0..<1_000 { ask(head: 3) }
        #expect(reads.withLock { $0.count } == 1 && answers.withLock { $0.isEmpty })
        let far = Int64.max / 2
        reads.withLock { $0.removeFirst() }(
            .with {
                $0.entries = [1, 2, 3].map { Self.oplog($0, until: far).bus }
                $0.upto = 3
            })
        #expect(answers.withLock { $0 } == Array(repeating: [2, 3], count: 1_000))
        ask(head: 3)
        #expect(reads.withLock { $0.isEmpty } && answers.withLock { $0.count } == 1_001)
        // The head moved: one more read from the end of the tail. An oplog that is recalled meanwhile is not in it.
        ask(head: 5)
        tails.recalled([OplogID(4), OplogID(2)], channelID: 1)
        reads.withLock { $0.removeFirst() }(
            .with {
                $0.after = 3
                $0.entries = [4, 5].map { Self.oplog($0, until: far).bus }
                $0.upto = 5
            })
        #expect(answers.withLock { $0.last } == [3, 5])
        // The store does not answer, so each session requests a page of its own.
        ask(head: 6)
        reads.withLock { $0.removeFirst() }(nil)
        #expect(answers.withLock { $0.last } == .some(nil))
    }

    @Test("changed configurations remove all tails, and waiting sessions read from the store")
    func forgetting() {
        let reads = Mutex<[@Sendable (Mss_Bus_V1_FetchReply?) -> Void]>([])
        let answers = Mutex<[Bool]>([])
        let tails = GlobalChannelCaches(time: Self.time) { _, _, _, answer in reads.withLock { $0.append(answer) } }
        func ask() {
            tails.page(for: Self.request(after: 0, head: 1)) { page in
                answers.withLock { $0.append(page != nil) }
            }
        }
        ask()
        tails.forgetAll()
        #expect(answers.withLock { $0 } == [false])
        reads.withLock { $0.removeFirst() }(.with { $0.upto = 1 })
        ask()
        #expect(reads.withLock { $0.count } == 1, "the late page of before is worth nothing")
    }

    @Test("A13: a new lease removes the tails, so no data that a failover lost is sent; a renewal keeps them")
    func newEpoch() throws {
        let recorder = BusRecorder()
        let bench = try HandlerBench([], over: recorder)
        func reads() -> [Mss_Bus_V1_FetchCommand] {
            bench.runtime.commands.fetch(Self.request(after: 0, head: 2), for: bench.session)
            return recorder.takeCommands(to: .fetch, as: Mss_Bus_V1_FetchCommands.self)
        }
        let first = try #require(reads().first)
        recorder.deliver(
            .with {
                $0.correlation = first.correlation
                $0.fetch.entries = [1, 2].map { Self.oplog($0, until: Int64.max / 2).bus }
                $0.fetch.upto = 2
            })
        bench.turn()
        #expect(reads().isEmpty, "the tail has it")
        bench.lease.apply(.with { $0.epoch = 1 }, requestedAt: .now, under: 1)
        #expect(reads().isEmpty)
        bench.lease.apply(.with { $0.epoch = 2 }, requestedAt: .now, under: 1)
        bench.turn()
        let again = reads().map(\.page)
        #expect(again.map(\.after) == [0] && again.map(\.newest) == [UInt32(GlobalChannelCache.entriesMax)])
    }
}
