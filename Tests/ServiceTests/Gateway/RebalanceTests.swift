import Testing

@testable import Gateway

@Suite("Shedding of connections after a scale-up") struct RebalanceTests {
    /// The seconds until the surplus has moved to an added gateway. Each gateway learns the counts every two seconds.
    private func seconds(of counts: [Int], perSecond: Int, comesBack: Bool = false) -> (counts: [Int], most: Int) {
        var counts = counts
        var gateways = counts.map { _ in Rebalance(perSecond: perSecond) }
        var most = 0
        for second in 0..<600 {
            for index in gateways.indices {
                if second % 2 == 0 {
                    let fleet = Rebalance.Fleet(gateways: counts.count, sessions: counts.reduce(0, +))
                    gateways[index].update(fleet, own: counts[index])
                }
                let given = gateways[index].next(own: counts[index])
                most = max(most, given)
                guard !comesBack else { continue }
                counts[index] -= given
                // The load balancer chooses the gateway with the fewest connections.
                for _ in 0..<given {
                    guard let least = counts.indices.min(by: { counts[$0] < counts[$1] }) else { break }
                    counts[least] += 1
                }
            }
        }
        return (counts, most)
    }

    @Test("a gateway that was added gets its part, at no more than the rate") func scaleUp() {
        let outcome = seconds(of: [9_000, 9_000, 0], perSecond: 20)
        #expect(outcome.most == 20)
        #expect(outcome.counts.reduce(0, +) == 18_000)
        #expect(outcome.counts.allSatisfy { (5_700...6_200).contains($0) }, "\(outcome.counts)")
    }

    @Test("small differences, few devices and a single gateway are left alone; 0 turns it off") func alone() {
        for counts in [[1_190, 1_000], [150, 0], [5_000]] {
            #expect(seconds(of: counts, perSecond: 20).most == 0, "\(counts)")
        }
        #expect(seconds(of: [9_000, 0], perSecond: 0).most == 0)
    }

    @Test("devices that left since the store's count keep the others here") func gone() {
        var gateway = Rebalance(perSecond: 20)
        gateway.update(Rebalance.Fleet(gateways: 2, sessions: 1_000), own: 1_000)
        #expect(gateway.next(own: 1_000) == 20)
        #expect(gateway.next(own: 505) == 5)
        #expect(gateway.next(own: 3) == 0)
    }

    @Test("where the devices come back it stops after half a minute, and tries again later") func comesBack() {
        var gateway = Rebalance(perSecond: 10)
        var given: [Int] = []
        for _ in 0..<1_800 {
            gateway.update(Rebalance.Fleet(gateways: 2, sessions: 1_000), own: 1_000)
            given.append(gateway.next(own: 1_000))
        }
        #expect(given[0..<30].allSatisfy { $0 == 10 })
        #expect(given[30..<631].allSatisfy { $0 == 0 })
        #expect(given[631..<661].allSatisfy { $0 == 10 })
        #expect(given[661...].allSatisfy { $0 == 0 }, "the second rest is twice as long")
    }
}
