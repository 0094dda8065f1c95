import DeliveryHistory
import TestSupport
import Testing

@testable import LoadGenerator

@Suite("PushBook: every push, exactly once, where it belongs") struct PushBookTests {
    private func book(globals: Int = 0) -> PushBook { PushBook(users: 3, devicesPerUser: 2, globals: globals) }

    @Test("a push is settled when it is answered and all its devices have it, in either order") func settled() {
        var book = book()
        let first = book.open(user: 1, stream: 4)
        #expect(book.answered(first, isStored: true) == .open && book.missing == 2)
        #expect(book.delivered(first, to: 2)?.outcome == .open)
        #expect(book.delivered(first, to: 3)?.outcome == .settled(stream: 4))
        let second = book.open(user: 0, stream: 5)
        #expect(book.delivered(second, to: 0)?.stream == 5)
        #expect(book.delivered(second, to: 1)?.outcome == .open)
        #expect(book.answered(second, isStored: true) == .settled(stream: 5))
        #expect(book.missing == 0 && book.faults.isEmpty && book.deliveries == 4)
    }

    @Test("a push that no device got is missing") func lost() {
        var book = book()
        let push = book.open(user: 0, stream: 0)
        _ = book.answered(push, isStored: true)
        _ = book.delivered(push, to: 0)
        #expect(book.missing == 1)
    }

    @Test("the last of the most devices that a user can have counts like the others") func manyDevices() {
        let most = PushBook.devicesPerUserMax
        var book = PushBook(users: 2, devicesPerUser: most, globals: 0)
        let push = book.open(user: 1, stream: 0)
        #expect(book.answered(push, isStored: true) == .open && book.missing == most)
        for device in most..<(2 * most - 1) { #expect(book.delivered(push, to: device)?.outcome == .open) }
        #expect(book.delivered(push, to: 2 * most - 1)?.outcome == .settled(stream: 0))
        #expect(book.delivered(push, to: 2 * most - 1) == nil)
        #expect(book.missing == 0 && book.faults == PushBook.Faults(duplicated: 1))
    }

    @Test("a second delivery is found") func duplicated() {
        var book = book()
        let push = book.open(user: 0, stream: 0)
        _ = book.delivered(push, to: 0)
        #expect(book.delivered(push, to: 0) == nil)
        #expect(book.faults == PushBook.Faults(duplicated: 1))
    }

    @Test("another user's device, and a number that was never pushed, are found") func strangers() {
        var book = book(globals: 1)
        let push = book.open(user: 0, stream: 0)
        #expect(book.delivered(push, to: 2) == nil && book.delivered(push + 1, to: 0) == nil)
        #expect(book.delivered(PushBook.firstGlobal + 1, to: 0) == nil)
        book.foundStranger()
        #expect(book.faults == PushBook.Faults(strangers: 4))
    }

    @Test("a push of unknown outcome is neither due nor wrong") func unknown() {
        var book = book()
        let push = book.open(user: 0, stream: 0)
        #expect(book.answered(push, isStored: false) == .settled(stream: 0))
        #expect(book.delivered(push, to: 0)?.outcome == .open)
        #expect(book.delivered(push, to: 1)?.outcome == .open)
        #expect(book.missing == 0 && book.faults.isEmpty)
    }

    @Test("a global push is settled by the last device") func global() {
        var book = book(globals: 2)
        let push = book.openGlobal(1, stream: 7)
        _ = book.delivered(push, to: 5)
        #expect(book.answered(push, isStored: true) == .open && book.missing == 5)
        for device in 0..<4 { #expect(book.delivered(push, to: device)?.outcome == .open) }
        #expect(book.delivered(push, to: 4)?.outcome == .settled(stream: 7))
        #expect(book.delivered(push, to: 4) == nil)
        #expect(book.missing == 0 && book.faults == PushBook.Faults(duplicated: 1))
    }

    @Test("the missing pushes are correct after random events, over many chunks", arguments: 1...2) func random(
        seed: Int
    ) {
        var random = SeededGenerator(seed: UInt64(seed))
        var book = PushBook(users: 50, devicesPerUser: 4, globals: 0)
        var missing = 0
        for _ in 0..<70_000 {
            let user = Int.random(in: 0..<50, using: &random)
            let push = book.open(user: user, stream: 0)
            let devices = (0..<4).filter { _ in Bool.random(using: &random) }
            let isStored = Bool.random(using: &random)
            let cut = devices.count / 2
            for device in devices.prefix(cut) { _ = book.delivered(push, to: user * 4 + device) }
            _ = book.answered(push, isStored: isStored)
            for device in devices.dropFirst(cut) { _ = book.delivered(push, to: user * 4 + device) }
            if isStored { missing += 4 - devices.count }
        }
        #expect(book.missing == missing && book.faults.isEmpty && book.count == 70_000, "seed \(seed)")
    }
}
