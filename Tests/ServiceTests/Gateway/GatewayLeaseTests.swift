import BusMessages
import SwiftProtobuf
import SyncModel
import Synchronization
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

    private static func lease(_ versions: Versions) throws -> GatewayLease {
        let context = try GatewaySocketFixture.context()
        return GatewayLease(
            gatewayID: "g", bus: ControlConnection(context, keysFor: .device).bus, clock: .system,
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
        for _ in 0..<2 { lease.apply(Self.answer(3, 7), requestedAt: now) }
        #expect(lease.holds(at: now + .milliseconds(5_999)) && !lease.holds(at: now + .seconds(6)))
        #expect(versions.taken.withLock { $0 } == 1)
    }

    @Test("a renewal after the lease's end tells the sessions, which withheld data meanwhile; one in time does not")
    func regained() throws {
        let (versions, now) = (Versions(), ContinuousClock.now)
        let lease = try Self.lease(versions)
        for ago in [30, 20, 1, 0] { lease.apply(Self.answer(3, 7), requestedAt: now - .seconds(ago)) }
        #expect(versions.regained.withLock { $0 } == 2)
        lease.apply(Self.answer(4, 7), requestedAt: now)
        #expect(versions.regained.withLock { $0 } == 2 && versions.taken.withLock { $0 } == 2)
    }

    @Test("R8: a failed renewal is repeated after 250 ms, also while the lease holds")
    func retry() async throws {
        let lease = try Self.lease(Versions())
        lease.apply(Self.answer(3, 7), requestedAt: .now)
        #expect(lease.pause == Limits.gatewayLeaseRenewal)
        // There is no broker.
        await lease.renew()
        #expect(lease.holds(at: .now) && lease.pause == .milliseconds(250))
        lease.apply(Self.answer(3), requestedAt: .now)
        #expect(lease.pause == Limits.gatewayLeaseRenewal)
    }

    @Test("V6, D17: a new lease holds only with the control data that was in force at its start")
    func controlVersion() throws {
        let (versions, now) = (Versions(), ContinuousClock.now)
        let lease = try Self.lease(versions)
        lease.apply(Self.answer(3, 7), requestedAt: now)
        #expect(lease.holds(at: now))
        // The gateway was cut off for so long that it had no lease, so a change became in force meanwhile.
        let later = now + .seconds(20)
        lease.apply(Self.answer(4, 8), requestedAt: later)
        #expect(!lease.holds(at: later))
        lease.apply(Self.answer(4), requestedAt: later + .seconds(1))
        #expect(!lease.holds(at: later + .seconds(1)), "renewed is not newer")
        versions.here.withLock { $0 = 8 }
        #expect(lease.holds(at: later + .seconds(1)))
    }
}
