public import Logging

/// Offline REST resources: fetched through a local cache, edited offline, refreshed by pushes (spec, two-way §1).
///
/// Every call works without `run()`; in a task of the app's own that sends edits as soon as it can, and refreshes.
public final class ResourceClient: Sendable {
    let configuration: ResourceConfiguration
    let transport: any ResourceTransport
    let logger: Logger
    let store: ResourceStore
    let board = ResourceBoard()
    /// Edits go one run at a time, so that they stay in order.
    let sending = Turns()

    /// Opens the store, which evicts what its policies say; asks the backend nothing.
    ///
    /// - Throws: `ResourceError`: `invalidArgument`, `store`, `storeKey`.
    public init(
        configuration: ResourceConfiguration, transport: any ResourceTransport, logger: Logger
    ) throws(ResourceError) {
        try configuration.check()
        self.configuration = configuration
        self.transport = transport
        self.logger = logger
        store = try ResourceStore(
            path: configuration.storePath, limit: configuration.maxStoreSize, cipher: configuration.cipher,
            clock: configuration.clock)
    }

    /// The store was damaged beyond reading when this client was made: its file stands beside the new one, with
    /// `.damaged` at the end. Edits that had not been sent are lost.
    public var replacedDamagedStore: Bool { store.replacedDamaged }

    // MARK: Users

    /// Whose resources these are from now on; nil: nobody is signed in. What is cached for one user, and what that one
    /// has edited, is never given to another, and waits until the user is back.
    ///
    /// - Throws: `ResourceError.invalidArgument` for an empty id, or one over 100 UTF-16 units.
    public func bind(userID: String?) throws(ResourceError) {
        guard userID.map({ (1...100).contains($0.utf16.count) }) ?? true else {
            throw ResourceError(.invalidArgument, "userID takes 1 to 100 characters")
        }
        board.setOwner(userID ?? "")
    }

    // MARK: Working offline

    /// Tells of the network as the operating system does. Without these calls, and beside them, the client finds out by
    /// failures: after one it asks nothing for 1 s, then 2, 4 … 60 s.
    public func networkChanged(isAvailable: Bool) { board.networkChanged(isAvailable: isAvailable) }

    /// Works offline although there is a network, or does so no more; then `run()` sends all edits. Without a network it
    /// has no effect.
    ///
    /// - Returns: whether it has one.
    @discardableResult
    public func setOfflineMode(_ isOn: Bool) -> Bool { board.setOfflineMode(isOn) }

    /// Whether the service is talked to.
    public var status: SyncNetworkStatus { board.status(at: configuration.clock()) }

    /// Fetches that a local copy was good for, since this client was made.
    public var cacheHitCount: Int { board.hits }
    /// Fetches that looked for a local copy in vain.
    public var cacheMissCount: Int { board.misses }

    var isOnline: Bool { board.isOnline(at: configuration.clock()) }

    /// - Throws: `ResourceError.userChanged` when another user was bound since a call began.
    func checkStill(_ owner: String) throws(ResourceError) {
        guard board.owner == owner else {
            throw ResourceError(.userChanged, "another user was bound while the call was at work")
        }
    }
}
