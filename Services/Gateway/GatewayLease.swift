import BusMessages
import Logging
import ServiceKit
import ServiceLifecycle
import SwiftProtobuf
import SyncModel
import Synchronization

/// This gateway's lease: while it holds, other processes count on its sessions; when it does not, nothing is handed
/// out (design §4, fencing). It runs on the boot-time clock from the moment it was asked for, so a process that was
/// paused finds it gone before it writes. Nobody who changes control data waits for a gateway without a lease: so one
/// that was taken anew holds only once the data here is what was in force when it was taken.
final class GatewayLease: Service, Sendable {
    private struct State {
        var epoch: Int64 = 0
        var until: ContinuousClock.Instant?
        /// In force when it was taken.
        var controlVersion: Int64 = 0
    }

    private let state = Mutex(State())
    private let changes = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let gatewayID: String
    private let bus: MessageBus
    private let clock: ProcessClock
    private let logger: Logger
    private let controlVersion: @Sendable () -> Int64
    private let sessions: @Sendable () -> Int
    private let onReply: @Sendable (Mss_Bus_V1_Reply, _ askedAt: ContinuousClock.Instant) -> Void
    private let onTaken: @Sendable () -> Void
    private let onFleet: @Sendable (Rebalance.Fleet) -> Void

    /// - Parameters:
    ///   - controlVersion: of the control data that sessions go by now.
    ///   - sessions: how many are open here now.
    ///   - onReply: called with every answer to a renewal, before the lease counts.
    ///   - onTaken: called when a new lease was taken: every session is to be announced under it.
    ///   - onFleet: called with what the store says of all gateways.
    init(
        gatewayID: String, bus: MessageBus, clock: ProcessClock, logger: Logger,
        controlVersion: @escaping @Sendable () -> Int64, sessions: @escaping @Sendable () -> Int = { 0 },
        onReply: @escaping @Sendable (Mss_Bus_V1_Reply, _ askedAt: ContinuousClock.Instant) -> Void = { _, _ in },
        onTaken: @escaping @Sendable () -> Void, onFleet: @escaping @Sendable (Rebalance.Fleet) -> Void = { _ in }
    ) {
        self.gatewayID = gatewayID
        self.bus = bus
        self.clock = clock
        self.controlVersion = controlVersion
        self.logger = logger
        self.sessions = sessions
        self.onReply = onReply
        self.onTaken = onTaken
        self.onFleet = onFleet
    }

    /// The epoch of the lease held last, 0 before the first.
    var epoch: Int64 { state.withLock { $0.epoch } }

    /// Whether the lease holds at this instant.
    func holds(at now: ContinuousClock.Instant) -> Bool { standing(at: now).holds }

    /// The lease held last, and whether it holds at this instant.
    func standing(at now: ContinuousClock.Instant) -> (epoch: Int64, holds: Bool) {
        let state = state.withLock { $0 }
        let holds = state.until.map { now < $0 } ?? false && controlVersion() >= state.controlVersion
        return (state.epoch, holds)
    }

    /// New control data is in force here: who waits for it is told at once, not with the next renewal.
    func controlDataChanged() { changes.continuation.yield() }

    func run() async throws {
        await withTaskCancellationOrGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                group.addTask {
                    // Only a lease that holds: two that ask for a new one would take it from each other.
                    for await _ in self.changes.stream where self.holds(at: self.clock.now()) { await self.renew() }
                }
                group.addTask {
                    while !Task.isCancelled, !Task.isShuttingDownGracefully {
                        await self.renew()
                        try? await cancelWhenGracefulShutdown { try await Task.sleep(for: self.pause) }
                    }
                }
            }
        } onCancelOrGracefulShutdown: {
            self.changes.continuation.finish()
        }
    }

    /// Until the next renewal: sooner while there is no lease.
    var pause: Duration { holds(at: clock.now()) ? Limits.gatewayLeaseRenewal : .milliseconds(250) }

    /// Renews the lease, or takes a new one.
    func renew() async {
        let (asked, held, version, count) = (clock.now(), epoch, controlVersion(), sessions())
        do throws(BusError) {
            let reply = try await bus.request(
                .lease, as: Mss_Bus_V1_SessionCommands.self
            ) { [gatewayID] correlation in
                .with {
                    $0.correlation = correlation
                    $0.renewLease.gatewayID = gatewayID
                    $0.renewLease.epoch = held
                    $0.renewLease.controlVersion = version
                    $0.renewLease.sessions = UInt64(clamping: count)
                }
            }
            guard case .lease(let lease)? = reply.body else { return }
            onReply(reply, asked)
            take(lease, askedAt: asked)
        } catch {
            logger.warning("lease not renewed", metadata: ["error": "\(error)"])
        }
    }

    /// Takes the store's answer to a renewal over.
    func take(_ lease: Mss_Bus_V1_LeaseReply, askedAt: ContinuousClock.Instant) {
        let isNew = state.withLock { state in
            let isNew = lease.epoch != state.epoch
            if isNew { state.controlVersion = lease.controlVersion }
            (state.epoch, state.until) = (lease.epoch, askedAt + Limits.gatewayLease)
            return isNew
        }
        onFleet(Rebalance.Fleet(gateways: Int(lease.gateways), sessions: Int(clamping: lease.sessions)))
        guard isNew else { return }
        logger.info("lease taken", metadata: ["epoch": "\(lease.epoch)"])
        onTaken()
    }
}
