import DeliveryHistory
import NIOCore
import ServiceKit
import SyncModel
import TestSupport
import Testing

@testable import Gateway

@Suite("Admission of connections at the gateway")
struct AdmissionTests {
    private let start = ContinuousClock.now

    private static func source(_ number: Int) -> SourceAddress {
        SourceAddress(bytes: [10, UInt8(number >> 16), UInt8(number >> 8 & 0xff), UInt8(number & 0xff)])
    }

    private static func limits(_ change: (inout AdmissionLimits) -> Void = { _ in }) -> AdmissionLimits {
        var limits = AdmissionLimits()
        change(&limits)
        return limits
    }

    @Test("SEC2: a source has 20 new connections a second and 80 at once; another source is not touched by it")
    func perSource() {
        var admission = Admission(limits: Self.limits(), now: start)
        var number: UInt64 = 0
        func arrive(_ source: Int, _ seconds: Double) -> Admission.Decision {
            number += 1
            let decision = admission.arrived(number, from: Self.source(source), at: start + .seconds(seconds))
            if case .admit = decision { admission.connected(number, at: start) }
            return decision
        }
        #expect((0..<200).count { _ in arrive(1, 0) == .admit(closing: nil) } == 80)
        #expect(arrive(1, 0) == .refuse(.sourceRate))
        #expect(arrive(2, 0) == .admit(closing: nil))
        #expect((0..<200).count { _ in arrive(1, 1) == .admit(closing: nil) } == 20)
    }

    @Test("SEC2: a flood from many sources shares one rate of handshakes; new sources get in")
    func reserve() {
        var admission = Admission(limits: Self.limits { $0.suspectHandshakes = 25 }, now: start)
        var number: UInt64 = 0
        func arrive(_ source: Int, _ now: ContinuousClock.Instant, fails: Bool) -> Admission.Decision {
            number += 1
            let decision = admission.arrived(number, from: Self.source(source), at: now)
            if fails { admission.ended(number, at: now) } else { admission.connected(number, at: now) }
            return decision
        }
        // 250 attackers make two connections a second each for a minute. A new correct device comes every 100 ms.
        var honest: [Admission.Decision] = []
        var attacks: [Admission.Decision] = []
        for step in 0..<60_000 / 2 {
            let now = start + .milliseconds(2 * step)
            attacks.append(arrive(step % 250, now, fails: true))
            if step % 50 == 0 { honest.append(arrive(1_000 + step, now, fails: false)) }
        }
        #expect(honest.allSatisfy { $0 == .admit(closing: nil) })
        #expect(attacks.count { $0 == .refuse(.suspectRate) } > 20_000)
        #expect(admission.unconnectedCount == 0)
    }

    @Test("SEC2: a late event loop accepts no connection, also of an unknown source, until it is in time again")
    func lateness() {
        var admission = Admission(limits: Self.limits { $0.lateness = .milliseconds(25) }, now: start)
        let (late, inTime) = (Duration.milliseconds(26), Duration.milliseconds(25))
        #expect(admission.arrived(1, from: Self.source(1), lateness: late, at: start) == .refuse(.late))
        #expect(admission.arrived(2, from: Self.source(1), lateness: inTime, at: start) == .admit(closing: nil))
        #expect(admission.unconnectedCount == 1)
    }

    @Test("SEC2: the lateness of a loop is that of its last probe, or the age of the one that waits")
    func probes() {
        var loop = LoopLateness()
        #expect(loop.lateness(at: start) == .zero)
        #expect(loop.begin(at: start) == true)
        #expect(loop.begin(at: start) == false, "one probe at a time")
        #expect(loop.lateness(at: start + .milliseconds(30)) == .milliseconds(30), "it has not returned")
        loop.end(at: start + .milliseconds(40))
        #expect(loop.lateness(at: start + .milliseconds(41)) == .milliseconds(40))
        #expect(loop.lateness(at: start + .milliseconds(240)) == .zero, "an old measurement says nothing")
        #expect(loop.begin(at: start + .milliseconds(240)) == true)
        loop.end(at: start + .milliseconds(241))
        #expect(loop.lateness(at: start + .milliseconds(242)) == .milliseconds(1))
    }

    @Test("SEC2: at the limit the source with most connections without Connect loses one and gets no more")
    func cap() {
        let limits = Self.limits {
            $0.unconnected = 10
            $0.sourceConnections = 1_000
        }
        var admission = Admission(limits: limits, now: start)
        for number in 1...7 { #expect(admission.arrived(UInt64(number), from: Self.source(1), at: start).isTaken) }
        for number in 8...10 { #expect(admission.arrived(UInt64(number), from: Self.source(2), at: start).isTaken) }
        #expect(admission.arrived(11, from: Self.source(1), at: start) == .refuse(.unconnected))
        #expect(admission.arrived(12, from: Self.source(3), at: start) == .admit(closing: 1))
        admission.ended(1, at: start)
        #expect(admission.unconnectedCount == 10)
        #expect(admission.arrived(13, from: Self.source(2), at: start) == .admit(closing: 2))
        admission.connected(5, at: start)
        #expect(admission.arrived(14, from: Self.source(4), at: start) == .admit(closing: nil), "one has connected")
        // Among equal connections, the oldest is closed.
        var even = Admission(limits: Self.limits { $0.unconnected = 3 }, now: start)
        for number in 1...3 { #expect(even.arrived(UInt64(number), from: Self.source(number), at: start).isTaken) }
        #expect(even.arrived(4, from: Self.source(4), at: start) == .admit(closing: 1))
    }

    @Test("SEC2: many devices behind one address without failures are preferred to failing sources")
    func officeUnderAttack() {
        let limits = Self.limits {
            $0.unconnected = 100
            $0.suspectHandshakes = 25_000
        }
        var admission = Admission(limits: limits, now: start)
        // Fifty attackers: each failed before and now holds two connections.
        for number in UInt64(1)...50 {
            _ = admission.arrived(number, from: Self.source(Int(number)), at: start)
            admission.ended(number, at: start)
        }
        for number in UInt64(51)...150 {
            _ = admission.arrived(number, from: Self.source(Int(number) % 50 + 1), at: start)
        }
        #expect(admission.unconnectedCount == 100)
        var displaced: Set<UInt64> = []
        for number in UInt64(201)...260 {
            guard case .admit(let other) = admission.arrived(number, from: Self.source(1_000), at: start) else {
                Issue.record("the office is kept out")
                return
            }
            if let other { displaced.insert(other) }
        }
        #expect(displaced.count == 60 && displaced.isSubset(of: 51...150))
        #expect(admission.arrived(300, from: Self.source(1), at: start) != .admit(closing: 201))
    }

    @Test("SEC2: random arrivals and ends: the limit holds, and only worse sources lose connections")
    func random() {
        for seed: UInt64 in 0..<20 {
            var failed: Set<Int> = []
            var generator = SeededGenerator(seed: seed)
            let limits = Self.limits {
                $0.unconnected = 20
                $0.sourceConnections = 100_000
                $0.suspectHandshakes = 25_000
            }
            var admission = Admission(limits: limits, now: start)
            var waiting: [UInt64: Int] = [:]
            for number in UInt64(1)...2_000 {
                let source = Int.random(in: 0..<8, using: &generator)
                let own = waiting.values.count { $0 == source }
                switch admission.arrived(number, from: Self.source(source), at: start) {
                case .admit(let displaced):
                    if let displaced, let other = waiting.removeValue(forKey: displaced) {
                        let isWorse = failed.contains(other) && !failed.contains(source)
                        #expect(isWorse || waiting.values.count { $0 == other } >= own, "seed \(seed)")
                    }
                    waiting[number] = source
                case .refuse: #expect(waiting.count == 20, "seed \(seed)")
                }
                #expect(waiting.count <= 20 && admission.unconnectedCount == waiting.count, "seed \(seed)")
                for gone in waiting.keys.sorted() where Int.random(in: 0..<60, using: &generator) == 0 {
                    let source = waiting.removeValue(forKey: gone) ?? 0
                    if Bool.random(using: &generator) {
                        failed.remove(source)
                        admission.connected(gone, at: start)
                    } else {
                        failed.insert(source)
                        admission.ended(gone, at: start)
                    }
                }
            }
        }
    }

    @Test("SEC2: a source is an IPv4 address, written in either way, or the network of an IPv6 one")
    func sources() throws {
        func source(_ text: String) throws -> SourceAddress {
            SourceAddress(try SocketAddress(ipAddress: text, port: 1))
        }
        #expect(try source("10.0.0.1") == source("::ffff:10.0.0.1"))
        #expect(try source("10.0.0.1") != source("10.0.0.2"))
        #expect(try source("2001:db8:1:2::1") == source("2001:db8:1:2:ffff::9"))
        #expect(try source("2001:db8:1:2::1") != source("2001:db8:1:3::1"))
        #expect(SourceAddress(nil) == SourceAddress(bytes: []))
    }

    // MARK: Rates

    @Test("SEC11: an app and a user have their limits; others are not affected")
    func shared() {
        var limits = AdmissionLimits()
        (limits.appConnects, limits.appRequests, limits.appChanges, limits.userBinds) = (5, 5, 5, 5)
        var rates = SharedRates(limits: limits)
        let (flooded, other) = (InstanceID("flooded"), InstanceID("other"))
        #expect((0..<100).count { _ in rates.chargeConnect(flooded, at: start) } == 20)
        #expect(rates.chargeConnect(other, at: start) == true)
        for cost in [FrameCost.request, .change] {
            #expect((0..<100).count { _ in rates.charge(cost, of: flooded, at: start) == .zero } == 20)
            #expect(rates.charge(cost, of: flooded, at: start) == .seconds(4))
            #expect(rates.charge(cost, of: other, at: start) == .zero)
        }
        #expect((0..<100).count { _ in rates.charge(.plain, of: flooded, at: start) == .zero } == 100)
        #expect((0..<100).count { _ in rates.chargeBind(UserID("u"), of: flooded, at: start) } == 20)
        #expect(rates.chargeBind(UserID("v"), of: flooded, at: start) == true)
        #expect(rates.chargeBind(UserID("u"), of: other, at: start) == true, "another app's user of that name")
    }

    @Test(
        "SEC11: a device that sends too much is slowed, and when that does not help it is closed",
        arguments: [
            (FrameCost.plain, 2_000), (.request, 200), (.change, 20),
        ])
    func device(cost: FrameCost, perSecond: Int) {
        var rates = SessionRates(limits: AdmissionLimits(), now: start)
        for _ in 0..<4 * perSecond { #expect(rates.charge(cost, at: start) == .slow(.zero)) }
        var verdicts: [SessionRates.Verdict] = []
        for _ in 0..<4 * perSecond { verdicts.append(rates.charge(cost, at: start)) }
        #expect(verdicts.dropLast().allSatisfy { $0 != .flood && $0 != .slow(.zero) })
        #expect(verdicts.last == .flood)
        // A device that waits as long as requested is never closed.
        rates = SessionRates(limits: AdmissionLimits(), now: start)
        var now = start
        for _ in 0..<100 * perSecond {
            guard case .slow(let wait) = rates.charge(cost, at: now) else {
                Issue.record("closed though it waited")
                return
            }
            now += wait
        }
        #expect((95.0...97.0).contains(start.duration(to: now) / .seconds(1)))
    }
}

extension Admission.Decision {
    /// Whether the connection was admitted.
    fileprivate var isTaken: Bool { if case .admit = self { true } else { false } }
}
