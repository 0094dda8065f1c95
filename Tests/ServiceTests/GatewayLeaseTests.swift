import BusMessages
import SwiftProtobuf
import SyncModel
import Synchronization
import Testing

@testable import Gateway
@testable import ServiceKit

@Suite("The gateway's lease") struct GatewayLeaseTests {
    /// Of the control data here, and how often a lease was taken.
    private final class Versions: Sendable {
        let here = Mutex<Int64>(7)
        let taken = Mutex(0)
    }

    private static func lease(_ versions: Versions) throws -> GatewayLease {
        let context = try GatewaySocketFixture.context()
        return GatewayLease(
            gatewayID: "g", bus: ControlConnection(context, keysFor: .device).bus, clock: .system,
            logger: context.logger,
            controlVersion: { versions.here.withLock { $0 } }, onTaken: { versions.taken.withLock { $0 += 1 } })
    }

    private static func answer(_ epoch: Int64, _ version: Int64 = 0) -> Mss_Bus_V1_LeaseReply {
        .with {
            $0.epoch = epoch
            $0.controlVersion = version
        }
    }

    @Test("it holds for 6 s from when it was asked for; each new one makes the sessions announce themselves")
    func duration() throws {
        let (versions, now) = (Versions(), ContinuousClock.now)
        let lease = try Self.lease(versions)
        #expect(!lease.holds(at: now))
        for _ in 0..<2 { lease.take(Self.answer(3, 7), askedAt: now) }
        #expect(lease.holds(at: now + .milliseconds(5_999)) && !lease.holds(at: now + .seconds(6)))
        #expect(versions.taken.withLock { $0 } == 1)
    }

    @Test("V6, D17: a new lease holds only once the control data here is what was in force when it was taken")
    func controlVersion() throws {
        let (versions, now) = (Versions(), ContinuousClock.now)
        let lease = try Self.lease(versions)
        lease.take(Self.answer(3, 7), askedAt: now)
        #expect(lease.holds(at: now))
        // Cut off for long: meanwhile a change was said to be in force, as this gateway had no lease.
        let later = now + .seconds(20)
        lease.take(Self.answer(4, 8), askedAt: later)
        #expect(!lease.holds(at: later))
        lease.take(Self.answer(4), askedAt: later + .seconds(1))
        #expect(!lease.holds(at: later + .seconds(1)), "renewed is not newer")
        versions.here.withLock { $0 = 8 }
        #expect(lease.holds(at: later + .seconds(1)))
    }
}
