import Credentials
import ServiceKit
import SyncModel
import Synchronization

/// Makes the session contexts of this gateway, from its clocks, its lease and its control data.
final class SessionContextSource: Sendable {
    let clock: ProcessClock
    let databaseTime: SharedDatabaseClock
    let control: ControlDirectory
    private let keys: OpenedKeys
    private let functions: SessionContext.Functions
    private let heldLease = Mutex<GatewayLease?>(nil)

    /// - Parameters:
    ///   - ring: decrypts the keys of devices.
    ///   - random: draws a number from 0 to below 1, for jitter.
    init(
        clock: ProcessClock, databaseTime: SharedDatabaseClock, control: ControlDirectory, ring: SealingRing,
        random: @escaping @Sendable () -> Double, admission: AdmissionController
    ) {
        self.clock = clock
        self.databaseTime = databaseTime
        self.control = control
        let keys = OpenedKeys(ring: ring)
        self.keys = keys
        functions = SessionContext.Functions(
            openKey: { keys.secret(of: $0, $1) }, random: random,
            chargeConnect: { admission.chargeConnect($0, at: $1) },
            chargeBind: { admission.chargeBind($0, of: $1, at: $2) })
    }

    /// The lease of this gateway; nil before it was made.
    var lease: GatewayLease? {
        get { heldLease.withLock { $0 } }
        set { heldLease.withLock { $0 = newValue } }
    }

    /// The session context of this moment.
    func make() -> SessionContext {
        let (now, snapshot) = (clock.now(), control.snapshot)
        let standing = lease?.standing(at: now, controlVersion: snapshot.version)
        return SessionContext(
            now: now, databaseTime: databaseTime.now, machineTime: clock.wallTime(),
            holdsLease: standing?.holds ?? false, leaseEpoch: standing?.epoch ?? 0, control: snapshot,
            functions: functions)
    }

    /// Draws a number from 0 to below 1, for jitter.
    func random() -> Double { functions.random() }

    /// Forgets the decrypted keys, because control data changed.
    func forgetKeys() { keys.forgetAll() }
}
