import BusMessages
import Logging
import ServiceKit
import ServiceLifecycle
import SwiftProtobuf
import SyncModel
import Synchronization

/// The lease of this gateway. While it holds, the writer counts on the gateway's sessions. Without it, the gateway
/// sends no data (Design.md#leases-and-fencing).
///
/// The lease counts from its request, on the steady clock, so a paused process sees that it ended before it writes.
/// A change of control data does not wait for gateways without a lease. So a new lease holds only when the gateway has
/// the control data that was in force when the lease was given.
final class GatewayLease: Service, Sendable {
    private struct State {
        var epoch: Int64 = 0
        var until: ContinuousClock.Instant?
        /// The control version in force when the lease was given.
        var controlVersion: Int64 = 0
        /// The database's snapshot when the lease was given.
        var snapshot = ""
        /// The last request failed.
        var needsRetry = false
    }

    private let state = Mutex(State())
    private let changes = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    private let gatewayID: String
    private let bus: MessageBus
    private let clock: ProcessClock
    private let logger: Logger
    private let controlVersion: @Sendable () -> Int64
    private let sessions: @Sendable () -> Int
    private let onTaken: @Sendable () -> Void
    private let onRegained: @Sendable () -> Void
    private let onFleet: @Sendable (Rebalance.Fleet) -> Void

    /// - Parameters:
    ///   - controlVersion: returns the version of the control data that sessions use.
    ///   - sessions: returns the number of open sessions.
    ///   - onTaken: called for each new lease. Every session must register again.
    ///   - onRegained: called when the same lease holds again after its end. Data that was withheld meanwhile may be
    ///     sent.
    ///   - onFleet: called with the store's figures about all gateways.
    init(
        gatewayID: String, bus: MessageBus, clock: ProcessClock, logger: Logger,
        controlVersion: @escaping @Sendable () -> Int64, sessions: @escaping @Sendable () -> Int = { 0 },
        onTaken: @escaping @Sendable () -> Void, onRegained: @escaping @Sendable () -> Void = {},
        onFleet: @escaping @Sendable (Rebalance.Fleet) -> Void = { _ in }
    ) {
        self.gatewayID = gatewayID
        self.bus = bus
        self.clock = clock
        self.controlVersion = controlVersion
        self.logger = logger
        self.sessions = sessions
        self.onTaken = onTaken
        self.onRegained = onRegained
        self.onFleet = onFleet
    }

    /// The epoch of the last lease; 0 before the first.
    var epoch: Int64 { state.withLock { $0.epoch } }

    /// The epoch of the last lease, and the database's snapshot when it was given.
    var taken: (epoch: Int64, snapshot: String) { state.withLock { ($0.epoch, $0.snapshot) } }

    /// Whether the lease holds at this instant.
    func holds(at now: ContinuousClock.Instant) -> Bool { standing(at: now, controlVersion: controlVersion()).holds }

    /// The epoch of the last lease, and whether the lease holds at this instant.
    ///
    /// - Parameter controlVersion: of the control data for which the answer counts.
    func standing(at now: ContinuousClock.Instant, controlVersion: Int64) -> (epoch: Int64, holds: Bool) {
        let state = state.withLock { $0 }
        let holds = state.until.map { now < $0 } ?? false && controlVersion >= state.controlVersion
        return (state.epoch, holds)
    }

    /// Renews the lease at once, so that the store learns of new control data before the next renewal.
    func controlDataChanged() { changes.continuation.yield() }

    func run() async throws {
        await withTaskCancellationOrGracefulShutdownHandler {
            await withDiscardingTaskGroup { group in
                group.addTask {
                    // Only a lease that holds: two concurrent requests for a new lease would replace each other's.
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

    /// The time until the next renewal. It is shorter while there is no lease, and after a failed renewal: the database
    /// may have failed over to a server that does not know the sessions.
    var pause: Duration {
        let needsRetry = state.withLock { $0.needsRetry }
        return !needsRetry && holds(at: clock.now()) ? Limits.gatewayLeaseRenewal : .milliseconds(250)
    }

    /// Renews the lease, or requests a new one.
    func renew() async {
        let (requested, held, version, count) = (clock.now(), epoch, controlVersion(), sessions())
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
            apply(lease, requestedAt: requested)
        } catch {
            state.withLock { $0.needsRetry = true }
            logger.warning("the lease of this gateway was not renewed; retrying", metadata: ["error": "\(error)"])
        }
    }

    /// Applies the store's reply to a renewal.
    ///
    /// - Parameter requestedAt: the instant before the request was sent.
    func apply(_ lease: Mss_Bus_V1_LeaseReply, requestedAt: ContinuousClock.Instant) {
        let (isNew, isReplaced, hadEnded) = state.withLock { state in
            let isNew = lease.epoch != state.epoch
            let hadEnded = state.until.map { $0 <= clock.now() } ?? false
            let isReplaced = isNew && state.until.map { requestedAt < $0 } ?? false
            if isNew { (state.controlVersion, state.snapshot) = (lease.controlVersion, lease.snapshot) }
            (state.epoch, state.until) = (lease.epoch, requestedAt + Limits.gatewayLease)
            state.needsRetry = false
            return (isNew, isReplaced, hadEnded)
        }
        onFleet(Rebalance.Fleet(gateways: Int(lease.gateways), sessions: Int(clamping: lease.sessions)))
        guard isNew else {
            if hadEnded { onRegained() }
            return
        }
        if isReplaced {
            logger.warning(
                """
                the lease of this gateway was replaced before its end: the database failed over, or another gateway \
                has the same MSS_GATEWAY_ID; if this repeats, give each gateway an id of its own
                """, metadata: ["gateway": "\(gatewayID)"])
        }
        logger.info("this gateway has a new lease", metadata: ["epoch": "\(lease.epoch)"])
        onTaken()
    }
}
