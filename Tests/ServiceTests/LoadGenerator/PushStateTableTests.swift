import DeliveryHistory
import TestSupport
import Testing

@testable import LoadGenerator

@Suite("PushStateTable: every push, exactly once, where it belongs") struct PushStateTableTests {
    private func pushes(globals: Int = 0) -> PushStateTable {
        PushStateTable(users: 3, devicesPerUser: 2, globals: globals)
    }

    @Test("a push is settled when it is answered and all its devices have it, in either order") func settled() {
        var pushes = pushes()
        let first = pushes.open(user: 1, stream: 4)
        #expect(pushes.answered(first, isStored: true) == .open && pushes.missing == 2)
        #expect(pushes.delivered(first, to: 2)?.outcome == .open)
        #expect(pushes.delivered(first, to: 3)?.outcome == .settled(stream: 4))
        let second = pushes.open(user: 0, stream: 5)
        #expect(pushes.delivered(second, to: 0)?.stream == 5)
        #expect(pushes.delivered(second, to: 1)?.outcome == .open)
        #expect(pushes.answered(second, isStored: true) == .settled(stream: 5))
        #expect(pushes.missing == 0 && pushes.faults.isEmpty && pushes.deliveries == 4)
    }

    @Test("a push that no device got is missing") func lost() {
        var pushes = pushes()
        let push = pushes.open(user: 0, stream: 0)
        _ = pushes.answered(push, isStored: true)
        _ = pushes.delivered(push, to: 0)
        #expect(pushes.missing == 1)
    }

    @Test("the last of the most devices that a user can have counts like the others") func manyDevices() {
        let most = PushStateTable.devicesPerUserMax
        var pushes = PushStateTable(users: 2, devicesPerUser: most, globals: 0)
        let push = pushes.open(user: 1, stream: 0)
        #expect(pushes.answered(push, isStored: true) == .open && pushes.missing == most)
        for device in most..<(2 * most - 1) { #expect(pushes.delivered(push, to: device)?.outcome == .open) }
        #expect(pushes.delivered(push, to: 2 * most - 1)?.outcome == .settled(stream: 0))
        #expect(pushes.delivered(push, to: 2 * most - 1) == nil)
        #expect(pushes.missing == 0 && pushes.faults == PushStateTable.Faults(duplicated: 1))
    }

    @Test("a second delivery is found") func duplicated() {
        var pushes = pushes()
        let push = pushes.open(user: 0, stream: 0)
        _ = pushes.delivered(push, to: 0)
        #expect(pushes.delivered(push, to: 0) == nil)
        #expect(pushes.faults == PushStateTable.Faults(duplicated: 1))
    }

    @Test("another user's device, and a number that was never pushed, are found") func strangers() {
        var pushes = pushes(globals: 1)
        let push = pushes.open(user: 0, stream: 0)
        #expect(pushes.delivered(push, to: 2) == nil && pushes.delivered(push + 1, to: 0) == nil)
        #expect(pushes.delivered(PushStateTable.firstGlobal + 1, to: 0) == nil)
        pushes.foundStranger()
        #expect(pushes.faults == PushStateTable.Faults(strangers: 4))
    }

    @Test("a push of unknown outcome is neither due nor wrong") func unknown() {
        var pushes = pushes()
        let push = pushes.open(user: 0, stream: 0)
        #expect(pushes.answered(push, isStored: false) == .settled(stream: 0))
        #expect(pushes.delivered(push, to: 0)?.outcome == .open)
        #expect(pushes.delivered(push, to: 1)?.outcome == .open)
        #expect(pushes.missing == 0 && pushes.faults.isEmpty)
    }

    @Test("a global push is settled by the last device") func global() {
        var pushes = pushes(globals: 2)
        let push = pushes.openGlobal(1, stream: 7)
        _ = pushes.delivered(push, to: 5)
        #expect(pushes.answered(push, isStored: true) == .open && pushes.missing == 5)
        for device in 0..<4 { #expect(pushes.delivered(push, to: device)?.outcome == .open) }
        #expect(pushes.delivered(push, to: 4)?.outcome == .settled(stream: 7))
        #expect(pushes.delivered(push, to: 4) == nil)
        #expect(pushes.missing == 0 && pushes.faults == PushStateTable.Faults(duplicated: 1))
    }

    @Test("the missing pushes are correct after random events, over many chunks", arguments: 1...2) func random(
        seed: Int
    ) {
        var random = SeededGenerator(seed: UInt64(seed))
        var pushes = PushStateTable(users: 50, devicesPerUser: 4, globals: 0)
        var missing = 0
        for _ in 0..<70_000 {
            let user = Int.random(in: 0..<50, using: &random)
            let push = pushes.open(user: user, stream: 0)
            let devices = (0..<4).filter { _ in Bool.random(using: &random) }
            let isStored = Bool.random(using: &random)
            let cut = devices.count / 2
            for device in devices.prefix(cut) { _ = pushes.delivered(push, to: user * 4 + device) }
            _ = pushes.answered(push, isStored: isStored)
            for device in devices.dropFirst(cut) { _ = pushes.delivered(push, to: user * 4 + device) }
            if isStored { missing += 4 - devices.count }
        }
        #expect(pushes.missing == missing && pushes.faults.isEmpty && pushes.count == 70_000, "seed \(seed)")
    }
}
