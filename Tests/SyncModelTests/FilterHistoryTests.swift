import DeliveryHistory
import SyncModel
import Testing

@Suite("Subscription parameters: the filters of a receiver")
struct FilterHistoryTests {
    private static func filter(_ value: Int) throws -> ResolvedFilter {
        try SubscriptionRules(
            SubscriptionText(filter: "n >= $from", attributes: "n number", parameters: "from number")
        ).resolved(device: SubscriptionValues(["from": .number(Double(value))]), user: SubscriptionValues())
    }

    private static func attributes(_ number: Int) -> String {
        SubscriptionValues(["n": .number(Double(number))]).text
    }

    @Test("a new receiver goes by its filter from the first oplog on; one that was served before had everything")
    func beginning() throws {
        var new = FilterHistory()
        #expect(new.adopt(try Self.filter(5), head: OplogID(9), isKnown: false, stored: .zero, oldest: nil) == .none)
        #expect(new.segments.count == 1 && !new.flows(OplogID(3), attributes: Self.attributes(4)))
        var known = FilterHistory()
        #expect(known.adopt(try Self.filter(5), head: OplogID(9), isKnown: true, stored: .zero, oldest: nil) == .made)
        #expect(known.flows(OplogID(9), attributes: "") && !known.flows(OplogID(10), attributes: ""))
        #expect(known.isDelivered(OplogID(9), attributes: "") && !known.isDelivered(OplogID(10), attributes: ""))
        var open = FilterHistory()
        #expect(open.adopt(.everything, head: OplogID(9), isKnown: true, stored: .zero, oldest: nil) == .none)
        #expect(open.flows(OplogID(99), attributes: ""))
    }

    @Test("the same filter again changes nothing; more than 256 different ones are refused, and the last one stays")
    func limits() throws {
        var history = FilterHistory()
        for value in 0..<Limits.filterSegments {
            let filter = try Self.filter(value)
            let head = OplogID(Int64(value))
            let change = history.adopt(filter, head: head, isKnown: false, stored: .zero, oldest: OplogID(1))
            #expect(change == (value == 0 ? .none : .made))
            let before = history
            #expect(history.adopt(filter, head: head, isKnown: false, stored: .zero, oldest: OplogID(1)) == .none)
            #expect(history == before)
        }
        let refused = try Self.filter(999)
        let head = OplogID(1_000)
        #expect(history.adopt(refused, head: head, isKnown: true, stored: .zero, oldest: OplogID(1)) == .refused)
        #expect(history.current == (try Self.filter(Limits.filterSegments - 1)))
        // A filter is removed when the oplogs that it decided are deleted.
        let made = history.adopt(refused, head: head, isKnown: true, stored: head, oldest: OplogID(900))
        #expect(made == .made && history.segments.count == 2)
    }

    @Test("A, B, A, B …: the stored history does not grow")
    func alternating() throws {
        var history = FilterHistory()
        for round in 0..<1_000 {
            let head = OplogID(Int64(round))
            _ = history.adopt(
                try Self.filter(round % 2), head: head, isKnown: false, stored: head, oldest: OplogID(1))
            #expect(history.segments.count <= 3)
        }
    }

    /// A channel, a receiver that loses connections, and the oplogs that the receiver has stored.
    private struct Channel {
        var head = 0
        var stored = 0
        var sent = 0
        var history = FilterHistory()
        var rereads: [Int] = []
        var given: [Int: Int] = [:]
        /// The attribute of each oplog; the index is the id minus one.
        var numbers: [Int] = []

        mutating func adopt(_ filter: ResolvedFilter) {
            let change = history.adopt(
                filter, head: OplogID(Int64(head)), isKnown: false, stored: OplogID(Int64(stored)), oldest: OplogID(1))
            guard change == .made else { return }
            rereads += (0..<head).map { $0 + 1 }.filter { id in
                let attributes = FilterHistoryTests.attributes(numbers[id - 1])
                return filter.matches(attributes: attributes)
                    && !history.isDelivered(OplogID(Int64(id)), attributes: attributes)
            }
        }

        /// Sends the next `count` oplogs that the filters let through. The device stores them if they arrive.
        mutating func flow(_ count: Int, arrives: Bool) {
            for id in stride(from: sent + 1, through: min(sent + count, head), by: 1) {
                let attributes = FilterHistoryTests.attributes(numbers[id - 1])
                let flowing = history.flowing(above: OplogID(Int64(stored)))
                if flowing.flows(OplogID(Int64(id)), attributes: attributes), arrives { given[id, default: 0] += 1 }
                sent = id
                if arrives { stored = id }
            }
        }

        mutating func storeRereads() {
            for id in rereads { given[id, default: 0] += 1 }
            rereads = []
        }
    }

    @Test("by 300 seeds: each oplog is delivered at most once, and in the end each that a filter let through")
    func exactlyOnce() throws {
        let filters = try (0..<6).map { try Self.filter($0) }
        for seed in UInt64(1)...300 {
            var random = SeededGenerator(seed: seed)
            var channel = Channel()
            channel.adopt(filters[3])
            for _ in 0..<80 {
                switch Int.random(in: 0..<6, using: &random) {
                case 0, 1:
                    channel.head += 1
                    channel.numbers.append(Int.random(in: 0..<6, using: &random))
                case 2: channel.adopt(filters[Int.random(in: 0..<6, using: &random)])
                case 3: channel.flow(Int.random(in: 0...4, using: &random), arrives: true)
                case 4:
                    // Data in flight is lost, and the next connection begins at the sync point.
                    channel.flow(Int.random(in: 0...4, using: &random), arrives: false)
                    channel.sent = channel.stored
                default: channel.storeRereads()
                }
            }
            channel.adopt(filters[0])
            channel.flow(1_000, arrives: true)
            channel.storeRereads()
            #expect(
                channel.given == Dictionary(uniqueKeysWithValues: (0..<channel.head).map { ($0 + 1, 1) }),
                "seed \(seed)")
        }
    }
}
