import PostgreSQL
import SyncModel
import SyncStore

/// The database of a simulation: a store, its faults, and a standby that lags behind.
final class SimulatedDatabase {
    /// A change of a sync point.
    typealias Advanced = (address: ChannelAddress, deviceID: String, from: OplogID, to: OplogID)

    let simulation: Simulation
    private(set) var store: MemoryStore
    /// The data of the standby. The value is nil when there is no standby.
    private var standby: MemoryStore?
    private(set) var isUp = true
    /// The probability that a call has no connection and sends nothing.
    var refusals = 0.0
    /// The probability that a connection is lost before the answer, whether the call was executed or not.
    var lostAnswers = 0.0
    /// The database's clock, which decides validity.
    let clock: SimulatedClock
    /// Locked channel rows: the number of statements that are still refused, and the end of the lock.
    private var holds: [ChannelAddress: (refusals: Int, until: Duration)] = [:]
    /// The duration of the next append's commit.
    private var nextCommitTakes: Duration?
    private(set) var waitingCommits = 0
    /// When the last commit that hung ended.
    private(set) var lastHangEnded = Duration.zero
    /// Called when a commit succeeds after its process gave up.
    var whenCommitted: ([OplogStore.Append], [OplogStore.Appended?]) -> Void = { _, _ in }
    /// Called when a user's owner changes.
    var whenOwned: (UserID, DeviceID) -> Void = { _, _ in }
    /// Called when a sync point is recorded.
    var whenAdvanced: (Advanced, MemoryStore) -> Void = { _, _ in }

    init(_ simulation: Simulation, instances: [Instance], configurations: [SyncConfiguration]) {
        self.simulation = simulation
        store = MemoryStore(instances: instances, configurations: configurations)
        clock = SimulatedClock(simulation)
    }

    /// The database time.
    var now: WallTime { clock.time }

    /// Locks the row of a channel. The server refuses a statement that waits longer than its lock timeout of a second,
    /// so each second of the lock is one refusal.
    func hold(_ address: ChannelAddress, for duration: Duration) {
        holds[address] = (Int(duration.components.seconds), simulation.elapsed + duration)
    }

    /// Delays the next append's commit, as when a synchronous standby is away. The process gives up before the commit,
    /// and the channel rows are locked until then.
    func delayNextCommit(by duration: Duration) { nextCommitTakes = duration }

    /// Changes a configuration, as an operator does. False while the database is down.
    func change(_ configuration: SyncConfiguration) -> Bool {
        guard isUp else { return false }
        store.change(configuration)
        return true
    }

    /// Recalls a push, and returns the recall and the leases of the gateways to notify. The value is nil while the
    /// database is down.
    func recall(_ id: ThirdMessageID, of address: ChannelAddress) -> (recalled: OplogStore.Recalled?, LeaseRecord)? {
        guard isUp else { return nil }
        return (store.recall(id, of: address, at: now), store.leaseRecord)
    }

    /// The channels whose rows are locked.
    fileprivate var heldChannels: Set<ChannelAddress> {
        Set(holds.filter { $0.value.refusals > 0 && $0.value.until > simulation.elapsed }.keys)
    }

    /// The server's error for a statement that needs locked rows. The value is nil when the rows are not locked.
    private func refusal(of addresses: [ChannelAddress]) -> PostgresError? {
        for address in addresses {
            guard let hold = holds[address] else { continue }
            guard hold.refusals > 0, hold.until > simulation.elapsed else {
                holds[address] = nil
                continue
            }
            holds[address] = (hold.refusals - 1, hold.until)
            let state = simulation.pick(["55P03", "40P01", "57014"])
            return PostgresError(code: .server(sqlState: state), message: "the row is locked", mayRetry: true)
        }
        return nil
    }

    fileprivate func append(
        _ pushes: [OplogStore.Append], for process: SimulatedProcess
    ) throws(PostgresError) -> [OplogStore.Appended?] {
        if isUp, let refusal = refusal(of: pushes.map(\.address)) { throw refusal }
        if isUp, let delay = nextCommitTakes.take() {
            let (began, life) = (now, life)
            for push in pushes { holds[push.address] = (.max, simulation.elapsed + delay) }
            waitingCommits += 1
            simulation.after(delay) { [unowned self] in
                waitingCommits -= 1
                lastHangEnded = simulation.elapsed
                // A crash or a failover ends open transactions.
                guard self.life == life else { return }
                let answers = store.append(pushes, at: began)
                whenCommitted(pushes, answers)
            }
            throw PostgresError(code: .outcomeUnknown, message: "the commit takes too long", mayRetry: true)
        }
        return try call(for: process) { $0.append(pushes, at: $1) }
    }

    /// Rises with each crash and failover.
    private var life = 0 { didSet { holds = [:] } }

    private var standbyLagsUntil = Duration.zero

    /// Copies the data to the standby, unless the standby lags.
    func replicate() { if standbyLagsUntil <= simulation.elapsed { standby = store } }

    /// Copies the data to the standby, and nothing that is committed during the lag.
    func letStandbyLag(for duration: Duration) {
        standby = store
        standbyLagsUntil = simulation.elapsed + duration
    }

    /// Loses the primary and continues with the data of the standby.
    ///
    /// - Returns: false when there is no standby.
    func failOver() -> Bool {
        guard var standby else { return false }
        life += 1
        standby.failedOver(from: store)
        store = standby
        return true
    }

    /// Crashes the server, which empties the unlogged tables.
    func stop() {
        isUp = false
        life += 1
        store.forgetSessions()
    }

    func start() { isUp = true }

    /// Stores a revocation, and returns the leases of the gateways to notify. The value is nil while the database is
    /// down.
    func revoke(_ userID: UserID, digest: [UInt8]) -> LeaseRecord? {
        guard isUp else { return nil }
        store.revoke(userID, digest: digest, at: now)
        return store.leaseRecord
    }

    fileprivate func notifyOwnerChanges(since before: [MemoryStore.UserKey: MemoryStore.Owner], in store: MemoryStore) {
        for (key, owner) in store.owners where before[key] != owner {
            whenOwned(key.userID, owner.deviceID)
        }
    }

    fileprivate func record(
        _ resends: [SyncPointStore.Resend], _ advances: [SyncPointStore.Advance], in store: inout MemoryStore
    ) {
        let before = advances.map { point(of: $0, in: store) }
        store.record(resends, advances)
        for (advance, before) in zip(advances, before) {
            guard let address = store.address(of: advance.channelID) else { continue }
            whenAdvanced((address, advance.deviceID, before, point(of: advance, in: store)), store)
        }
    }

    private func point(of advance: SyncPointStore.Advance, in store: MemoryStore) -> OplogID {
        store.address(of: advance.channelID)
            .flatMap { store.syncPoint(of: $0, advance.deviceID, advance.storeID, advance.userID) } ?? .zero
    }

    fileprivate func call<Output>(
        for process: SimulatedProcess, _ body: (inout MemoryStore, WallTime) -> Output
    ) throws(PostgresError) -> Output {
        guard isUp, process.isAlive, !simulation.happens(refusals) else {
            throw PostgresError(code: .unavailable, message: "no connection", mayRetry: true)
        }
        let isLost = simulation.happens(lostAnswers)
        if isLost, simulation.happens(0.5) {
            throw PostgresError(code: .outcomeUnknown, message: "the connection was lost", mayRetry: true)
        }
        let output = body(&store, now)
        if isLost { throw PostgresError(code: .outcomeUnknown, message: "the connection was lost", mayRetry: true) }
        return output
    }
}

/// One process's connection to the database.
struct SimulatedDatabaseConnection: DeliveryStore {
    let database: SimulatedDatabase
    let process: SimulatedProcess
    /// Called after the commit of an append, before its answer is read.
    var whenAppended: () -> Void = {}

    func append(
        _ pushes: [OplogStore.Append]
    ) throws(PostgresError) -> (
        answers: [OplogStore.Appended?], presence: Result<[DeviceSessionStore.Presence], PostgresError>
    ) {
        let answers = try database.append(pushes, for: process)
        whenAppended()
        let presence = Result { () throws(PostgresError) in
            try database.call(for: process) { $0.presence(of: pushes.map(\.address), at: $1) }
        }
        return (answers, presence)
    }

    func lockedChannels(of channels: Set<ChannelAddress>) -> Set<ChannelAddress> {
        channels.intersection(database.heldChannels)
    }

    func leaseRecord() throws(PostgresError) -> LeaseRecord {
        try database.call(for: process) { store, _ in store.leaseRecord }
    }

    func change(_ book: [LeaseRecord.Change]) throws(PostgresError) {
        try database.call(for: process) { store, _ in
            for change in book { store.change(change) }
        }
    }

    func perform(
        _ commands: [SessionStoreCommand]
    ) throws(PostgresError) -> [Result<SessionStoreAnswer, PostgresError>] {
        try database.call(for: process) { store, now in
            let before = store.owners
            let answers = commands.map { Result<_, PostgresError>.success(store.perform($0, at: now)) }
            if store.owners != before { database.notifyOwnerChanges(since: before, in: store) }
            return answers
        }
    }

    func pages(_ reads: [PageRead]) throws(PostgresError) -> [Result<ChannelPage, PostgresError>] {
        try database.call(for: process) { store, now in reads.map { .success(store.page($0, at: now)) } }
    }

    func newest(
        of channelID: Int64, after: OplogID, below: OplogID, limit: Int
    ) throws(PostgresError) -> [OplogStore.ValidOplog] {
        try database.call(for: process) { store, now in
            store.newest(of: channelID, after: after, below: below, limit: limit, at: now)
        }
    }

    func recordOutcomes(of pushes: [OplogStore.LivePush]) throws(PostgresError) {
        try database.call(for: process) { store, _ in store.recordOutcomes(of: pushes) }
    }

    func record(
        _ resends: [SyncPointStore.Resend], _ advances: [SyncPointStore.Advance]
    ) throws(PostgresError) {
        try database.call(for: process) { store, _ in database.record(resends, advances, in: &store) }
    }
}
