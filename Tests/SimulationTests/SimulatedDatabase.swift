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
    /// A sync point was recorded.
    var whenAdvanced: (Advanced, MemoryStore) -> Void = { _, _ in }

    init(_ simulation: Simulation, instances: [Instance], configurations: [SyncConfiguration]) {
        self.simulation = simulation
        store = MemoryStore(instances: instances, configurations: configurations)
    }

    /// The standby now has what there is.
    func replicate() { standby = store }

    /// The primary is lost; the standby goes on with what it has.
    ///
    /// - Returns: false when there is none.
    func failOver() -> Bool {
        guard var standby else { return false }
        standby.failedOver(from: store)
        store = standby
        return true
    }

    /// It dies, and with it what is in unlogged tables.
    func stop() {
        isUp = false
        store.forgetSessions()
    }

    func start() { isUp = true }

    /// Sessions are ended: gives whom to tell, and nil while the database is away.
    func revoke(_ userID: UserID, digest: [UInt8]) -> LeaseBook? {
        guard isUp else { return nil }
        store.revoke(userID, digest: digest, at: simulation.wallTime)
        return store.leaseBook
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
            .flatMap { store.syncPoint(of: $0, advance.deviceID, advance.storeID) } ?? .zero
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
        let output = body(&store, simulation.wallTime)
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
        let answers = try database.call(for: process) { $0.append(pushes, at: $1) }
        whenAppended()
        let presence = Result { () throws(PostgresError) in
            try database.call(for: process) { $0.presence(of: pushes.map(\.address), at: $1) }
        }
        return (answers, presence)
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
        try database.call(for: process) { store, now in commands.map { .success(store.perform($0, at: now)) } }
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
