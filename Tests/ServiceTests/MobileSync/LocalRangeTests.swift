import DeliveryHistory
import SyncModel
import TestSupport
import Testing

@testable import MobileSync

@Suite("History: the complete range of the local copy") struct LocalRangeTests {
    /// A channel on a server, and a device's copy that is filled in every possible way.
    private struct World {
        var server: [Int64] = []
        var local: Set<Int64> = []
        var range = LocalRange()
        var position: Int64 = 0

        /// The invariant of the range: no oplog above `from` and up to `upto` is missing.
        var holds: Bool {
            server.filter { $0 > range.from.value && $0 <= range.upto.value }.allSatisfy(local.contains)
        }

        mutating func push(threshold: Int) {
            let new = server.filter { $0 > position }
            guard let head = new.last else { return }
            let sent = new.suffix(threshold)
            local.formUnion(sent)
            let passedOver = new.count > threshold ? sent.first! - 1 : 0
            range.pushed(after: OplogID(position), upto: OplogID(head), discarded: OplogID(passedOver))
            position = head
        }

        mutating func read(before: Int64, count: Int) {
            let found = server.filter { before == 0 || $0 < before }.suffix(count)
            local.formUnion(found)
            let more = found.first.map { first in server.contains { $0 < first } } ?? false
            range.read(
                downTo: OplogID(more ? found.first! - 1 : 0), before: OplogID(before),
                head: OplogID(server.last ?? 0))
        }

        mutating func drop(_ count: Int) {
            let dropped = local.sorted().prefix(count)
            local.subtract(dropped)
            if let last = dropped.last { range.dropped(upto: OplogID(last)) }
        }
    }

    @Test("pushes, thresholds, pages of history and a full store in any order: the range never promises too much")
    func simulation() {
        let seed = UInt64.random(in: 0...UInt64.max)
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<300 {
            var world = World()
            for _ in 0..<60 {
                switch Int.random(in: 0..<6, using: &generator) {
                case 0, 1:
                    var id = world.server.last ?? 0
                    for _ in 0..<Int.random(in: 1...5, using: &generator) {
                        id += Int64.random(in: 1...3, using: &generator)
                        world.server.append(id)
                    }
                case 2: world.push(threshold: Int.random(in: 1...8, using: &generator))
                case 3: world.read(before: 0, count: Int.random(in: 1...6, using: &generator))
                case 4:
                    world.read(before: world.range.from.value + 1, count: Int.random(in: 1...6, using: &generator))
                default: world.drop(Int.random(in: 1...3, using: &generator))
                }
                #expect(world.holds, "seed \(seed): \(world)")
            }
        }
    }

    @Test("a page from the middle of an empty copy does not count as the newest part")
    func island() {
        var world = World(server: Array(1...60))
        world.read(before: 50, count: 100)
        #expect(world.range == LocalRange())
        world.push(threshold: 5)
        world.read(before: 40, count: 3)
        #expect(world.range == LocalRange(from: OplogID(55), upto: OplogID(60)))
    }

    @Test("reading down reaches the first oplog, and then the range begins at zero") func reachesTheEnd() {
        var world = World(server: Array(1...20))
        world.push(threshold: 5)
        #expect(world.range == LocalRange(from: OplogID(15), upto: OplogID(20)))
        while world.range.from > .zero { world.read(before: world.range.from.value + 1, count: 4) }
        #expect(world.local.count == 20 && world.holds)
    }
}
