import PostgreSQL
import SyncModel
import Testing

@testable import SyncStore

@Suite("Batches of pushes for the append function")
struct AppendBatchTests {
    private static func push(to user: String, _ key: String = "k") -> OplogStore.Append {
        OplogStore.Append(
            address: ChannelAddress(
                target: TargetAddress(instanceID: InstanceID("app"), kind: .user, target: user), bizType: BizType("B")),
            oplog: Oplog(
                id: .zero, thirdMessageID: ThirdMessageID(key), payload: [1], isBinary: false,
                targeting: Targeting(), validUntil: WallTime(milliseconds: 0), createdAt: WallTime(milliseconds: 0),
                isPersistent: true))
    }

    /// The users whose channels are locked, in the order of the locks.
    private static func locked(by pushes: [OplogStore.Append]) -> [[UInt8]] {
        guard case .textArray(let targets) = AppendBatch(pushes).parameters[4] else { return [] }
        return targets.map { Array(($0 ?? "").utf8) }
    }

    @Test("channels are locked in one order, also those of users whose names are one name in two spellings")
    func oneOrder() {
        let users = ["u\u{e9}", "ue\u{301}", "ue", "u\u{212b}", "u\u{c5}", "uA\u{30a}"]
        let order = Self.locked(by: users.map { Self.push(to: $0) })
        #expect(order == order.sorted { $0.lexicographicallyPrecedes($1) } && Set(order).count == users.count)
        for _ in 1...50 { #expect(Self.locked(by: users.shuffled().map { Self.push(to: $0) }) == order) }
    }

    @Test("a key that a batch has twice is sent once; the second push is answered as a repeat of the first")
    func repeats() {
        let batch = AppendBatch([Self.push(to: "a", "1"), Self.push(to: "b", "1"), Self.push(to: "a", "1")])
        #expect(batch.rowCount == 2 && batch.drawn(by: 0) == 1)
        #expect(batch.sources.map(\.row) == [0, 1, 0] && batch.sources.map(\.isRepeat) == [false, false, true])
    }
}
