import Synchronization
import Testing

@testable import AMQP

@Suite("Publisher confirms") struct ConfirmLedgerTests {
    /// Collects the publishes whose completion was called.
    private final class Told: Sendable {
        private let numbers = Mutex<[Int]>([])
        var all: [Int] { numbers.withLock { $0 } }
        func confirmation(_ number: Int) -> Outbox.Confirmation {
            { _ in self.numbers.withLock { $0.append(number) } }
        }
    }

    private let told = Told()

    private func ledger(of count: Int) -> ConfirmLedger {
        var ledger = ConfirmLedger()
        for number in 1...count { ledger.recordPublished([told.confirmation(number)]) }
        return ledger
    }

    @Test("a tag settles its own message, with multiple all up to it, and an unknown tag none")
    func settles() {
        var ledger = ledger(of: 5)
        for confirmation in ledger.removeConfirmed(2, multiple: false) { confirmation(.confirmed) }
        for confirmation in ledger.removeConfirmed(4, multiple: true) { confirmation(.confirmed) }
        #expect(told.all == [2, 1, 3, 4])
        #expect(
            ledger.removeConfirmed(2, multiple: false).isEmpty && ledger.removeConfirmed(99, multiple: false).isEmpty)
        #expect(!ledger.isEmpty)
    }

    @Test("a lost connection ends what is left, and tags begin at 1 again")
    func abandons() {
        var ledger = ledger(of: 3)
        _ = ledger.removeConfirmed(1, multiple: false)
        for confirmation in ledger.removeAll() { confirmation(.unknown) }
        #expect(told.all == [2, 3] && ledger.isEmpty)
        ledger.recordPublished([told.confirmation(9)])
        #expect(ledger.removeConfirmed(1, multiple: false).count == 1)
    }
}
