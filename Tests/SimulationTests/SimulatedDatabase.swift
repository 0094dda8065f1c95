import PostgreSQL
import SyncModel
import SyncStore

/// The database of a simulation: one store, what can go wrong with it, and a standby that lags behind.
final class SimulatedDatabase {
    /// A receiver's place in a channel, before and after.
    typealias Advanced = (address: ChannelAddress, deviceID: String, from: OplogID, to: OplogID)

    let simulation: Simulation
    private(set) var store: MemoryStore
    /// What a standby has; nil: there is none.
    private var standby: MemoryStore?
    private(set) var isUp = true
    /// How often a call meets a connection that is gone before anything was sent.
    var refusals = 0.0
    /// How often a call's connection falls before its answer, done or not.
    var lostAnswers = 0.0
    /// Decides when validity ends, and when leases do.
    let clock: SimulatedClock
    /// Somebody holds the row of a channel: that many more statements that need it are refused, and none after a time.
    private var holds: [ChannelAddress: (refusals: Int, until: Duration)] = [:]
    /// The next append waits for its commit so long.
    private var nextCommitTakes: Duration?
    private(set) var waitingCommits = 0
    /// A commit has come through of which no process knows.
    var whenCommitted: ([OplogStore.Append], [OplogStore.Appended?]) -> Void = { _, _ in }
    /// A user's owner changed.
    var whenOwned: (UserID, DeviceID) -> Void = { _, _ in }
    /// A sync point was recorded.
    var whenAdvanced: (Advanced, MemoryStore) -> Void = { _, _ in }

    init(_ simulation: Simulation, instances: [Instance], configurations: [SyncConfiguration]) {
        self.simulation = simulation
        store = MemoryStore(instances: instances, configurations: configurations)
        clock = SimulatedClock(simulation)
    }

    /// Its clock now.
    var now: WallTime { clock.time }

    /// Somebody holds the row of a channel. The server refuses a statement that waits longer than its lock timeout of a
    /// second, so each second of the hold is one refusal.
    func hold(_ address: ChannelAddress, for duration: Duration) {
        holds[address] = (Int(duration.components.seconds), simulation.elapsed + duration)
    }

    /// The next append waits so long for its commit, as when a synchronous standby is away: its process gives up before,
    /// and until then the rows of its channels are locked.
    func delayNextCommit(by duration: Duration) { nextCommitTakes = duration }

    /// An operator changes a rule.
    func change(_ configuration: SyncConfiguration) -> Bool {
        guard isUp else { return false }
        store.change(configuration)
        return true
    }

    /// A push is recalled: gives what became of it and whom to tell, and nil while the database is away.
    func recall(_ id: ThirdMessageID, of address: ChannelAddress) -> (recalled: OplogStore.Recalled?, LeaseBook)? {
        guard isUp else { return nil }
        return (store.recall(id, of: address, at: now), store.leaseBook)
    }

    /// Channels whose row somebody holds now.
    fileprivate var heldChannels: Set<ChannelAddress> {
        Set(holds.filter { $0.value.refusals > 0 && $0.value.until > simulation.elapsed }.keys)
    }

    /// What the server says to a statement that needs rows which are locked; nil: they are not.
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
                // A crash, or a standby that takes over, ends what was not committed.
                guard self.life == life else { return }
                let answers = store.append(pushes, at: began)
                whenCommitted(pushes, answers)
            }
            throw PostgresError(code: .outcomeUnknown, message: "the commit takes too long", mayRetry: true)
        }
        return try call(for: process) { $0.append(pushes, at: $1) }
    }

    /// Ends with a crash, and with the primary.
    private var life = 0 { didSet { holds = [:] } }

    private var standbyLagsUntil = Duration.zero

    /// The standby now has what there is, unless it lags.
    func replicate() { if standbyLagsUntil <= simulation.elapsed { standby = store } }

    /// The standby has what there is, and nothing of what is committed in the time to come.
    func letStandbyLag(for duration: Duration) {
        standby = store
        standbyLagsUntil = simulation.elapsed + duration
    }

    /// The primary is lost; the standby goes on with what it has.
    ///
    /// - Returns: false when there is none.
    func failOver() -> Bool {
        guard var standby else { return false }
        life += 1
        standby.failedOver(from: store)
        store = standby
        return true
    }

    /// It dies, and with it what is in unlogged tables.
    func stop() {
        isUp = false
        life += 1
        store.forgetSessions()
    }

    func start() { isUp = true }

    /// Sessions are ended: gives whom to tell, and nil while the database is away.
    func revoke(_ userID: UserID, digest: [UInt8]) -> LeaseBook? {
        guard isUp else { return nil }
        store.revoke(userID, digest: digest, at: now)
        return store.leaseBook
    }

    fileprivate func tellOwners(_ before: [MemoryStore.UserKey: MemoryStore.Owner], in store: MemoryStore) {
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
            throw PostgresError(code: .outcomeUnknown, message: "the connection fell", mayRetry: true)
        }
        let output = body(&store, now)
        if isLost { throw PostgresError(code: .outcomeUnknown, message: "the connection fell", mayRetry: true) }
        return output
    }
}

/// One process's way to the database.
struct SimulatedDatabaseConnection: DeliveryStore {
    let database: SimulatedDatabase
    let process: SimulatedProcess
    /// Called when an append has been committed, before its answer is read.
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

    func leaseBook() throws(PostgresError) -> LeaseBook {
        try database.call(for: process) { store, _ in store.leaseBook }
    }

    func change(_ book: [LeaseBook.Change]) throws(PostgresError) {
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
            if store.owners != before { database.tellOwners(before, in: store) }
            return answers
        }
    }

    func pages(_ reads: [PageRead]) throws(PostgresError) -> [Result<ChannelPage, PostgresError>] {
        try database.call(for: process) { store, now in reads.map { .success(store.page($0, at: now)) } }
    }

    func newest(
        of channelID: Int64, after: OplogID, below: OplogID, limit: Int
    ) throws(PostgresError) -> [OplogStore.Standing] {
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
