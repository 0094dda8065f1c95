import Crypto
import SyncModel

/// What a session's rules look at beside its own state: clocks, the lease, configurations, and chance.
struct SessionSurroundings: Sendable {
    var now: ContinuousClock.Instant
    /// The database's: validity goes by it (spec D11).
    var databaseTime: WallTime
    /// This machine's: timestamps of signatures are compared with it.
    var machineTime: WallTime
    /// This gateway's lease holds: what it knows of its sessions is still true (design §4, fencing).
    var holdsLease: Bool
    /// Of the lease held last: a session registered under another is not on record.
    var leaseEpoch: Int64 = 0
    /// Entries that the connection takes now.
    var room = Int.max
    let configuration: @Sendable (InstanceID, BizType) -> SyncConfiguration?
    let instance: @Sendable (InstanceID) -> Instance?
    /// The secret of an instance's key; nil when this gateway cannot open it.
    let openKey: @Sendable (AppKey, InstanceID) -> SymmetricKey?
    /// Draws a number from 0 to below 1, for jitter; a function, since next to no event needs one.
    let random: @Sendable () -> Double
    /// Which configurations of an instance have filters.
    var filtered: @Sendable (InstanceID) -> FilteredTypes = { _ in FilteredTypes() }
    /// What of an instance needs a valid verdict.
    let checks: @Sendable (InstanceID) -> InstanceChecks
    /// Takes one of the connects that the app has in a second; false: there is none left (reliability SEC11).
    var connects: @Sendable (InstanceID, ContinuousClock.Instant) -> Bool = { _, _ in true }
    /// The same of the user's binds.
    var binds: @Sendable (UserID, InstanceID, ContinuousClock.Instant) -> Bool = { _, _, _ in true }

    /// The same with the room that is left behind batches which wait already.
    func behind(_ batches: Int) -> SessionSurroundings {
        guard room < .max else { return self }
        var world = self
        world.room = max(0, room - batches)
        return world
    }
}

extension SessionSurroundings {
    /// The configuration of a channel, as its rules are for the channel's push scope; nil: there is none.
    func rules(of key: SessionStateMachine.ChannelKey, in instanceID: InstanceID) -> SyncConfiguration? {
        configuration(instanceID, key.bizType)?.scoped(to: key.kind)
    }
}

/// Times and sizes of a device session; defaults are the gateway's settings' defaults.
struct SessionLimits: Sendable {
    /// From accept to the first frame (reliability SEC2).
    var connectDeadline = Duration.seconds(5)
    /// The device pings this often, until it names another interval.
    var heartbeat = Duration.seconds(60)
    /// The longest interval that a device may name; below the heartbeat it counts as that.
    var maxHeartbeat = Duration.seconds(300)
    /// Unstored bytes of payload on one connection; a slow device's backlog waits in the database (reliability R9).
    var windowBytes = 256 * 1_024
    /// The first wait of the resend ladder, told to every device (spec D14).
    var firstResend = Limits.firstResend
    /// Before a failed request to another process is repeated.
    var retryDelay = Duration.milliseconds(500)

    /// The longest interval between pings.
    var longestInterval: Duration { max(heartbeat, maxHeartbeat) }
}
