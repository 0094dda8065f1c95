import Concurrency
import DeviceProtocol
import Logging
import NIOCore
import SyncModel

/// Owns the local store, and serves the app and the connection, one event at a time.
///
/// It runs on its own queue because SQLite waits for the disk. No method suspends, so events never interleave.
actor ClientEngine {
    private let executor = BlockingExecutor(label: "mobile-sync")
    private let sharedState: ClientSharedState
    private let store: LocalStore
    /// The store's operations, which app threads use directly.
    nonisolated let outbox: OperationOutbox
    /// The lock of the store. The engine is created with the lock held; each later run holds it again and releases it
    /// at its end.
    nonisolated let lock: StoreLock
    /// Whether a damaged file was replaced by a new store.
    nonisolated let replacedDamagedStore: Bool
    private let delivery: OplogDelivery
    private var results: ResultReader
    private let parameters: ParameterValues
    private let lists: ChannelLists
    private let driver: ConnectionDriver

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    init(configuration: SyncClientConfiguration, sharedState: ClientSharedState, logger: Logger) throws(SyncError) {
        let store = try LocalStore(
            path: configuration.storePath, instanceID: configuration.instanceID, deviceID: configuration.deviceID,
            deviceSecret: configuration.deviceSecret, key: configuration.storeKey, limit: configuration.storeLimit,
            clock: configuration.clock)
        let delivery = try OplogDelivery(
            store: store, sharedState: sharedState, firstResend: configuration.firstResend)
        let parameters = ParameterValues(store: store.parameters, sharedState: sharedState)
        outbox = store.outbox
        lock = store.file.lock
        replacedDamagedStore = store.file.replacedDamaged
        results = ResultReader(outbox: store.outbox, sharedState: sharedState)
        lists = ChannelLists(store: store, sharedState: sharedState)
        driver = ConnectionDriver(
            configuration: configuration, sharedState: sharedState, logger: logger, store: store, delivery: delivery,
            parameters: parameters)
        sharedState.deviceID = store.device.identity.deviceID
        self.sharedState = sharedState
        self.store = store
        self.delivery = delivery
        self.parameters = parameters
    }

    /// Holds the store for a run. When another client has used the store since the last run, the engine starts as a new
    /// client does: it hands unconfirmed oplogs out again.
    ///
    /// - Throws: `SyncError`: `storeInUse` when another client uses the store, `storeKey` when another client has
    ///   changed the key, `store`.
    func resumeStore() throws(SyncError) {
        guard let channels = try store.resume() else { return }
        delivery.startOver(with: channels)
        results.startOver()
        sharedState.deviceID = store.device.identity.deviceID
        sharedState.dataSignals.send(())
        sharedState.changeSignals.send(())
    }

    // MARK: Connection

    /// The facts about this or the last connection.
    var record: ConnectionRecord { driver.record }

    /// Records that a connection attempt begins.
    func attempted() { driver.attempted() }

    /// Sends Connect on a new transport connection.
    func opened(_ channel: any Channel) -> ConnectionEnd? { driver.opened(channel) }

    /// Handles a received frame. Returns the reason when the connection has ended.
    func received(_ packet: Mss_Device_V1_Packet) -> ConnectionEnd? { driver.received(packet) }

    /// Sends the changes that the app made: another user, other parameters or another state.
    func sharedStateChanged() -> ConnectionEnd? { driver.sharedStateChanged() }

    /// Handles the passage of time. Returns the time of the next call.
    func ticked() -> (end: ConnectionEnd?, next: ContinuousClock.Instant?) { driver.ticked() }

    /// Cleans up after the transport connection, or before it closes.
    ///
    /// - Parameter sendsClose: whether the client ends the connection itself and sends a Close.
    func closed(sendsClose: Bool) { driver.closed(sendsClose: sendsClose) }

    // MARK: Data

    /// Returns the next oplog for the app; nil when there is none now.
    func nextOplog(of bizType: String?, row: Int64? = nil) throws(SyncError) -> SyncOplog? {
        guard let oplog = try delivery.next(of: bizType, row: row, isOpen: driver.isOpen) else { return nil }
        // The gateway needs a report of each resend.
        if oplog.state.repeats > 0 { driver.reportOplogs() }
        driver.scheduleTick()
        return oplog
    }

    /// Returns the available oplogs of one channel; nil when there are none now.
    func nextBatch(of bizType: String?, limit: Int) throws(SyncError) -> SyncBatch? {
        guard let first = try nextOplog(of: bizType) else { return nil }
        var oplogs = [first]
        while oplogs.count < limit, let next = try nextOplog(of: bizType, row: first.channelRow) { oplogs.append(next) }
        let hasMore = try store.channels.channel(row: first.channelRow).map { channel throws(SyncError) in
            try !store.oplogs.waiting(in: channel, limit: 1).isEmpty
        }
        // Resends come before waiting oplogs, independent of their ids.
        return SyncBatch(oplogs: oplogs.sorted { $0.oplogID < $1.oplogID }, hasMore: hasMore ?? false)
    }

    /// Records durably that the app has processed the oplogs, and reports it when there is a connection.
    func confirm(_ oplogs: [SyncOplog]) throws(SyncError) {
        try delivery.confirm(oplogs)
        driver.reportOplogs()
    }

    /// Returns the next result of an operation for the app; nil when there is none now.
    ///
    /// - Parameters:
    ///   - components: nil for all components.
    ///   - userID: returns a result only while this user is bound; nil for any bound user.
    func nextResult(of components: Set<String>?, ofUser userID: String?) throws(SyncError) -> SyncOperationResult? {
        try results.next(of: components, ofUser: userID)
    }

    // MARK: Parameters

    /// Sets a value, and sends it when there is a connection.
    func setParameter(
        _ parameter: DeviceParameter, kind: SyncParameterKind, userID: String?
    ) throws(SyncError) {
        try parameters.set(parameter, kind: kind, userID: userID)
        if kind == .server { driver.sendParameters() } else { driver.subscriptionsChanged() }
    }

    /// Returns every value of a user.
    func parameters(ofUser userID: String?) throws(SyncError) -> [SyncParameter] { try parameters.all(ofUser: userID) }

    // MARK: Lists

    /// Returns the stored history of a Sync ID, newest first, and the id at which the server must continue.
    func localHistory(
        of bizType: String, _ conversation: String?, before: Int64?, count: Int
    ) throws(SyncError) -> LocalHistory {
        try lists.history(of: bizType, conversation, before: before, count: count)
    }

    /// Returns the newest stored oplogs of a Sync ID.
    func oplogList(of bizType: String, _ conversation: String?, limit: Int) throws(SyncError) -> SyncOplogList {
        try lists.newest(of: bizType, conversation, limit: limit)
    }

    /// Returns the conversations of a Sync ID on the device, and the bound user.
    func localConversations(
        of bizType: String
    ) throws(SyncError) -> (conversations: [ConversationName: SyncConversation], userID: String?) {
        try lists.conversations(of: bizType)
    }

    /// Whether this user is bound now; nil: no user.
    func isBound(_ userID: String?) -> Bool { (sharedState.user?.userID ?? "").isSame(as: userID ?? "") }

    /// Merges the server's summary of a conversation with the local one.
    func merged(
        _ channel: Mss_Device_V1_ChannelSummary, of bound: String?, _ local: SyncConversation?
    ) -> SyncConversation? {
        lists.merged(channel, of: bound, local)
    }

    /// Stores that the user has read a conversation up to an oplog.
    func markRead(_ conversation: String, of bizType: String, upTo oplogID: Int64) throws(SyncError) {
        try lists.markRead(conversation, of: bizType, upTo: oplogID)
    }

    /// Sends `changeSignals` after each commit to the store, until the result is released.
    func observeCommits() -> CommitObserver { store.file.observeCommits(sharedState.changeSignals) }

    /// Stores a page of the history and returns its oplogs.
    ///
    /// - Parameters:
    ///   - userID: the bound user at the time of the request.
    ///   - list: the local part that the page continues.
    func storeHistory(
        _ page: Mss_Device_V1_HistoryPage, bizType: String, _ conversation: String?, before: Int64,
        of userID: String?, in list: LocalHistory
    ) throws(SyncError) -> [SyncOplog] {
        try lists.storeHistory(page, bizType: bizType, conversation, before: before, of: userID, in: list)
    }

    /// Returns the local state of the channels of the device and the bound user.
    func localSummary() throws(SyncError) -> [SyncChannelSummary] { try lists.summaries() }

    /// Merges the server's summary of a channel with the local one.
    ///
    /// - Parameter bound: the bound user at the time of the request.
    func merged(
        _ channel: Mss_Device_V1_ChannelSummary, of bound: String?, _ local: SyncChannelSummary?
    ) -> SyncChannelSummary {
        lists.merged(channel, of: bound, local)
    }

    /// Asks the gateway. The reply is `.none` without a connection or a reply in time.
    ///
    /// - Returns: the reply, and the user of the connection, whose data the reply contains.
    func ask(_ request: ClientRequests.Request) async -> (ClientRequests.Answer, userID: String?) {
        let userID = driver.boundUserID
        let answer = await withCheckedContinuation { continuation in
            driver.ask(request) { continuation.resume(returning: $0) }
        }
        return (answer, userID)
    }

    // MARK: Subscriptions

    /// Suspends or resumes a Sync ID.
    func setSuspended(_ isSuspended: Bool, bizType: String) throws(SyncError) {
        try store.subscriptions.setSuspended(isSuspended, bizType: bizType)
        driver.subscriptionsChanged()
    }

    /// Suspends a Sync ID and deletes its data.
    func unsubscribe(_ bizType: String) throws(SyncError) {
        try setSuspended(true, bizType: bizType)
        try store.subscriptions.deleteData(of: bizType, userID: sharedState.user?.userID)
    }

    /// Begins to request all data of a Sync ID again.
    func beginRecovery(of bizType: String) throws(SyncError) {
        try store.recoveries.begin(of: bizType, userID: sharedState.user?.userID)
        driver.recover()
    }

    // MARK: Logins

    /// Prepares a login, which is stored when the gateway accepts its bind.
    func prepareLogin(_ seal: PasswordSeal, of user: BoundUser) { store.logins.prepare(seal, of: user) }

    /// Counts an offline login, and returns the user's last good login; nil when there is none.
    func beginLoginAttempt(of userID: String) throws(SyncError) -> PasswordSeal? {
        try store.logins.beginAttempt(of: userID)
    }

    /// Whether the gateway has not yet accepted the bind of the prepared login.
    func awaitsLogin(of user: BoundUser) -> Bool { store.logins.isAwaited(user) }

    /// Takes back an attempt that could not check the password.
    func withdrawLoginAttempt(of userID: String) throws(SyncError) { try store.logins.withdrawAttempt(of: userID) }

    /// Records that the password of an offline login was right.
    func loginSucceeded(_ userID: String) throws(SyncError) { try store.logins.succeeded(userID) }

    // MARK: Device

    /// Stores the push token. When it has changed, the client connects again to report it.
    func setPushToken(_ token: PushToken) throws(SyncError) {
        if try store.device.setPushToken(token) { driver.connectAnew() }
    }

    /// Changes the key that encrypts the payloads.
    func changeStoreKey(to key: [UInt8]?) throws(SyncError) {
        try store.changeCipher(to: try key.map { key throws(SyncError) in try PayloadCipher(key: key) })
    }
}
