import DeliveryHistory
import TestSupport
import Testing

@testable import AMQP

@Suite("Settlements of deliveries") struct SettlementLedgerTests {
    @Test("the first deliveries that are accepted together need one frame, the others one each")
    func frames() {
        var ledger = SettlementLedger()
        for tag in [UInt64(3), 4, 7, 9, 10] { ledger.recordDelivery(tag) }
        #expect(
            ledger.acknowledge([(7, .accepted), (3, .accepted), (4, .accepted), (10, .accepted)])
                == [.init(tag: 7, settlement: .accepted, isMultiple: true), .init(tag: 10, settlement: .accepted)])
        #expect(!ledger.isEmpty)
        #expect(ledger.acknowledge([(10, .accepted), (3, .rejected), (99, .accepted)]) == [])
        #expect(ledger.acknowledge([(9, .requeued)]) == [.init(tag: 9, settlement: .requeued)])
        #expect(ledger.isEmpty)
    }

    @Test("in any order of settlements each delivery is settled once, as requested", arguments: 0..<50)
    func random(seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var ledger = SettlementLedger()
        var atBroker: Set<UInt64> = []
        var next: UInt64 = 1
        for _ in 0..<200 {
            for _ in 0..<Int.random(in: 0...5, using: &generator) {
                ledger.recordDelivery(next)
                atBroker.insert(next)
                next += UInt64.random(in: 1...3, using: &generator)
            }
            let settled = atBroker.shuffled(using: &generator).prefix(Int.random(in: 0...6, using: &generator)).map {
                (tag: $0, settlement: Bool.random(using: &generator) ? AMQPSettlement.accepted : .requeued)
            }
            var told: [UInt64: AMQPSettlement] = [:]
            for frame in ledger.acknowledge(settled) {
                // The effect of the frame at the broker.
                let tags = frame.isMultiple ? atBroker.filter { $0 <= frame.tag } : [frame.tag]
                for tag in tags {
                    #expect(atBroker.remove(tag) != nil)
                    told[tag] = frame.settlement
                }
            }
            #expect(told == Dictionary(uniqueKeysWithValues: settled.map { ($0.tag, $0.settlement) }))
            #expect(ledger.isEmpty == atBroker.isEmpty)
        }
    }
}
