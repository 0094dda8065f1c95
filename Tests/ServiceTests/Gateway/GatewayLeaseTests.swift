import BusMessages
import SwiftProtobuf
import SyncModel
import Synchronization
import TestSupport
import Testing

@testable import Gateway
@testable import ServiceKit

@Suite("The gateway's lease") struct GatewayLeaseTests {
    /// The control version of the gateway, and the number of leases that it took.
    private final class Versions: Sendable {
        let here = Mutex<Int64>(7)
        let taken = Mutex(0)
        let regained = Mutex(0)
    }

    /// A lease over a bus without a broker, or over a recorder.
    private static func lease(
        _ versions: Versions = Versions(), over bus: MessageBus? = nil, clock: ProcessClock = .system
    ) throws -> GatewayLease {
        let context = try GatewaySocketFixture.context()
        return GatewayLease(
            gatewayID: "g", bus: bus ?? ControlConnection(context, keysFor: .device).bus, clock: clock,
            logger: context.logger,
            controlVersion: { versions.here.withLock { $0 } }, onTaken: { versions.taken.withLock { $0 += 1 } },
            onRegained: { versions.regained.withLock { $0 += 1 } })
    }

    private static func answer(_ epoch: Int64, _ version: Int64 = 0) -> Mss_Bus_V1_LeaseReply {
        .with {
            $0.epoch = epoch
            $0.controlVersion = version
        }
    }

    @Test("it holds for 6 s from the request; each new lease makes the sessions register again")
    func duration() throws {
        let (versions, now) = (Versions(), ContinuousClock.now)
        let lease = try Self.lease(versions)
        #expect(!lease.holds(at: now))
        for held: Int64 in [0, 3] { lease.apply(Self.answer(3, 7), requestedAt: now, under: held) }
        #expect(lease.holds(at: now + .milliseconds(5_999)) && !lease.holds(at: now + .seconds(6)))
        #expect(versions.taken.withLock { $0 } == 1)
    }

    @Test("a renewal after the lease's end tells the sessions, which withheld data meanwhile; one in time does not")
    func regained() throws {
        let (versions, now) = (Versions(), ContinuousClock.now)
        let lease = try Self.lease(versions)
        lease.apply(Self.answer(3, 7), requestedAt: now - .seconds(30), under: 0)
        for (ago, regained) in [(20, 0), (1, 1), (0, 1)] {
            lease.apply(Self.answer(3), requestedAt: now - .seconds(ago), under: 3)
            #expect(versions.regained.withLock { $0 } == regained)
        }
        lease.apply(Self.answer(4, 7), requestedAt: now, under: 3)
        #expect(versions.regained.withLock { $0 } == 1 && versions.taken.withLock { $0 } == 2)
    }

    /// A lease over a recorder and on a clock that the test sets.
    private struct Bench {
        private let time = SteppedClock()
        let lease: GatewayLease
        let recorder = BusRecorder()

        init() throws {
            lease = try GatewayLeaseTests.lease(over: recorder.makeBus(clock: time.clock), clock: time.clock)
        }

        /// Sets the clock and returns the requests that are sent then.
        func requests(after milliseconds: Int) -> [Mss_Bus_V1_SessionCommand] {
            time.set(.milliseconds(milliseconds))
            lease.renewIfDue()
            return recorder.takeCommands(to: .lease, as: Mss_Bus_V1_SessionCommands.self)
        }

        /// Delivers the reply to a request.
        func reply(_ epoch: Int64, to request: Mss_Bus_V1_SessionCommand?) throws {
            let request = try requireValue(request, "no request was sent")
            recorder.deliver(
                .with {
                    $0.correlation = request.correlation
                    $0.lease = GatewayLeaseTests.answer(epoch, 7)
                })
        }

        /// Delivers an error as the reply to a request.
        func fail(_ request: Mss_Bus_V1_SessionCommand?) throws {
            let request = try requireValue(request, "no request was sent")
            recorder.deliver(
                .with {
                    $0.correlation = request.correlation
                    $0.failure.reason = "the database is unavailable"
                })
        }

        func holds(after milliseconds: Int) -> Bool { lease.holds(at: time.start + .milliseconds(milliseconds)) }
    }

    @Test("R8: a lease is renewed every second; a renewal does not wait for the reply to the one before")
    func overlap() throws {
        let bench = try Bench()
        try bench.reply(3, to: bench.requests(after: 0).first)
        #expect(bench.requests(after: 999).isEmpty)
        let renewals = [1_000, 1_999, 2_000, 3_000].map { bench.requests(after: $0) }
        #expect(renewals.map(\.count) == [1, 0, 1, 0], "two are in flight at most")
        try bench.reply(3, to: renewals[2].first)
        #expect(bench.holds(after: 7_999) && !bench.holds(after: 8_000))
        try bench.reply(3, to: renewals[0].first)
        #expect(bench.holds(after: 7_999), "the reply to an older request does not shorten the lease")
        #expect(bench.requests(after: 3_000).count == 1)
    }

    @Test("R8: without a lease one request is in flight, and the next one follows its failure")
    func request() throws {
        let bench = try Bench()
        let first = bench.requests(after: 0)
        #expect(first.map(\.renewLease.epoch) == [0] && bench.requests(after: 1_000).isEmpty)
        try bench.fail(first.first)
        #expect(bench.requests(after: 1_250).count == 1)
    }

    @Test("R8: a failed renewal is repeated at the next check, also while the lease holds")
    func retry() throws {
        let bench = try Bench()
        try bench.reply(3, to: bench.requests(after: 0).first)
        try bench.fail(bench.requests(after: 1_000).first)
        let again = bench.requests(after: 1_250)
        #expect(again.count == 1 && GatewayLease.checkEvery == .milliseconds(250))
        try bench.reply(3, to: again.first)
        #expect(bench.requests(after: 1_500).isEmpty)
    }

    @Test("D17: a change of control data renews the lease at once, or after the replies to two renewals")
    func change() throws {
        let bench = try Bench()
        try bench.reply(3, to: bench.requests(after: 0).first)
        func changed() -> [Mss_Bus_V1_SessionCommand] {
            bench.lease.controlDataChanged()
            return bench.recorder.takeCommands(to: .lease, as: Mss_Bus_V1_SessionCommands.self)
        }
        let renewals = [changed(), changed()].flatMap(\.self)
        #expect(renewals.count == 2 && changed().isEmpty)
        try bench.reply(3, to: renewals.first)
        #expect(bench.requests(after: 250).count == 1)
    }

    @Test("two renewals of a lost lease end in one lease, in whatever order the store answers them")
    func lostLease() throws {
        for isInOrder in [true, false] {
            let bench = try Bench()
            try bench.reply(3, to: bench.requests(after: 0).first)
            let renewals = [1_000, 2_000].flatMap { bench.requests(after: $0) }
            let replies = Array(zip([Int64(4), 5], renewals))
            for (epoch, request) in isInOrder ? replies : replies.reversed() {
                #expect(bench.requests(after: 3_000).isEmpty, "a third one would replace a lease again")
                try bench.reply(epoch, to: request)
            }
            #expect(bench.lease.epoch == 5)
            #expect(bench.requests(after: 3_000).map(\.renewLease.epoch) == [5])
        }
    }

    @Test("a database that begins again with lower epochs gives the gateway a lease") func lowerEpoch() throws {
        let bench = try Bench()
        try bench.reply(3, to: bench.requests(after: 0).first)
        try bench.reply(1, to: bench.requests(after: 1_000).first)
        #expect(bench.lease.epoch == 1 && bench.holds(after: 6_999))
    }

    @Test("V6, D17: a new lease holds only with the control data that was in force at its start")
    func controlVersion() throws {
        let (versions, now) = (Versions(), ContinuousClock.now)
        let lease = try Self.lease(versions)
        lease.apply(Self.answer(3, 7), requestedAt: now, under: 0)
        #expect(lease.holds(at: now))
        // The gateway was cut off for so long that it had no lease, so a change became in force meanwhile.
        let later = now + .seconds(20)
        lease.apply(Self.answer(4, 8), requestedAt: later, under: 3)
        #expect(!lease.holds(at: later))
        lease.apply(Self.answer(4), requestedAt: later + .seconds(1), under: 4)
        #expect(!lease.holds(at: later + .seconds(1)), "renewed is not newer")
        versions.here.withLock { $0 = 8 }
        #expect(lease.holds(at: later + .seconds(1)))
    }
}
