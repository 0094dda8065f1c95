import Crypto
import SyncModel

/// The inputs of a session's rules beside its own state: clocks, lease, control data, and functions of the gateway.
struct SessionContext: Sendable {
    /// The functions of the gateway that the rules call. All sessions share them.
    final class Functions: Sendable {
        /// Returns the secret of an instance's key; nil: this gateway cannot decrypt it.
        let openKey: @Sendable (AppKey, InstanceID) -> SymmetricKey?
        /// Draws a number from 0 to below 1, for jitter.
        let random: @Sendable () -> Double
        /// Charges one connect to the app; false: it has used up its rate (SEC11).
        let chargeConnect: @Sendable (InstanceID, ContinuousClock.Instant) -> Bool
        /// Charges one bind to the user; false: the user has used up the rate.
        let chargeBind: @Sendable (UserID, InstanceID, ContinuousClock.Instant) -> Bool

        init(
            openKey: @escaping @Sendable (AppKey, InstanceID) -> SymmetricKey? = { _, _ in nil },
            random: @escaping @Sendable () -> Double,
            chargeConnect: @escaping @Sendable (InstanceID, ContinuousClock.Instant) -> Bool = { _, _ in true },
            chargeBind: @escaping @Sendable (UserID, InstanceID, ContinuousClock.Instant) -> Bool = { _, _, _ in true }
        ) {
            self.openKey = openKey
            self.random = random
            self.chargeConnect = chargeConnect
            self.chargeBind = chargeBind
        }
    }

    var now: ContinuousClock.Instant
    /// The database time, which decides validity (D11).
    var databaseTime: WallTime
    /// The machine's time, for timestamps of signatures.
    var machineTime: WallTime
    /// This gateway's lease holds, so its knowledge of its sessions is current (Design.md#leases-and-fencing).
    var holdsLease: Bool
    /// The epoch of the last lease. A session that registered under another lease is not on record.
    var leaseEpoch: Int64 = 0
    /// The free capacity of the connection, in entries.
    var room = Int.max
    /// The control data of this moment. All rules of one event use the same.
    let control: ControlSnapshot
    let functions: Functions

    /// The same context with the free capacity that remains after waiting batches.
    func behind(_ batches: Int) -> SessionContext {
        guard room < .max else { return self }
        var context = self
        context.room = max(0, room - batches)
        return context
    }
}

extension SessionContext {
    func instance(_ id: InstanceID) -> Instance? { control.instance(id) }

    func configuration(_ instanceID: InstanceID, _ bizType: BizType) -> SyncConfiguration? {
        control.configuration(instanceID, bizType)
    }

    /// The configuration of a channel, with the rules of the channel's push scope; nil: none.
    func rules(of key: ChannelKey, in instanceID: InstanceID) -> SyncConfiguration? {
        configuration(instanceID, key.bizType)?.scoped(to: key.kind)
    }
}

/// Times and sizes of a device session. Defaults are the defaults of the settings.
struct SessionLimits: Sendable {
    /// Time from accept to the first frame (SEC2).
    var connectDeadline = Duration.seconds(5)
    /// Interval of pings until the device names another one.
    var heartbeat = Duration.seconds(60)
    /// The longest interval that a device may name. A value below the heartbeat is raised to it.
    var maxHeartbeat = Duration.seconds(300)
    /// The send window in payload bytes. Further data of a slow device waits in the database (R9).
    var windowBytes = 256 * 1_024
    /// The first wait of the resend ladder, which every device receives (D14).
    var firstResend = Limits.firstResend
    /// Delay before a failed request to another process is repeated.
    var retryDelay = Duration.milliseconds(500)

    /// The longest interval between pings.
    var longestInterval: Duration { max(heartbeat, maxHeartbeat) }
}
