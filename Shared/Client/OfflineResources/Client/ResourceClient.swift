public import Logging

/// REST resources that work offline: fetched through a local cache, edited offline, refreshed by pushes.
///
/// Every call works without `run()`. An app runs `run()` in a task; it sends edits as soon as possible and refreshes
/// copies.
public final class ResourceClient: Sendable {
    let configuration: ResourceConfiguration
    let store: ResourceStore
    let sharedState: ResourceSharedState
    let cache: ResourceCache
    let notifier: CallbackNotifier
    let exchange: BackendExchange
    let fetcher: ResourceFetcher
    let editor: ResourceEditor
    let sender: EditSender
    let refresher: ResourceRefresher
    let background: BackgroundRun
    /// Downloads and uploads of large files.
    public let files: FileTransfers

    /// Opens the store and evicts copies by their policies. Sends nothing to the backend.
    ///
    /// - Parameter fileTransport: transfers files; nil: the transport does it when it can, as `HTTPResourceTransport`.
    /// - Throws: `ResourceError`: `invalidArgument`, `store`, `storeKey`.
    public init(
        configuration: ResourceConfiguration, transport: any ResourceTransport,
        fileTransport: (any FileTransport)? = nil, logger: Logger
    ) throws(ResourceError) {
        try configuration.check()
        self.configuration = configuration
        store = try ResourceStore(
            path: configuration.storePath, limit: configuration.maxStoreSize, cipher: configuration.cipher,
            clock: configuration.clock)
        sharedState = ResourceSharedState(clock: configuration.clock)
        cache = ResourceCache(store: store, clock: configuration.clock)
        notifier = CallbackNotifier(callbacks: configuration.callbacks, cache: cache, sharedState: sharedState)
        exchange = BackendExchange(transport: transport, cache: cache, sharedState: sharedState, logger: logger)
        files = FileTransfers(
            transport: fileTransport ?? (transport as? any FileTransport), configuration: configuration,
            exchange: exchange, cache: cache, sharedState: sharedState)
        let loader = ResourceLoader(
            configuration: configuration, exchange: exchange, cache: cache, notifier: notifier, logger: logger)
        fetcher = ResourceFetcher(
            policies: configuration.policies, loader: loader, cache: cache, sharedState: sharedState)
        sender = EditSender(
            configuration: configuration, exchange: exchange, loader: loader, notifier: notifier, logger: logger)
        editor = ResourceEditor(
            configuration: configuration, sender: sender, cache: cache, sharedState: sharedState)
        refresher = ResourceRefresher(loader: loader, cache: cache, sharedState: sharedState, logger: logger)
        background = BackgroundRun(
            periodicRefreshPolicy: configuration.periodicRefreshPolicy,
            periodicRefreshInterval: configuration.periodicRefreshInterval, sender: sender, refresher: refresher,
            sharedState: sharedState, logger: logger)
    }

    /// Whether SQLite could not read the store's file at opening. The damaged file was then renamed with the suffix
    /// `.damaged`, and the store started empty: unsent edits are lost.
    public var replacedDamagedStore: Bool { store.replacedDamaged }

    // MARK: Users

    /// Selects the user of all following calls. One user's copies and edits are never visible to another user; they
    /// stay stored until the user is bound again.
    ///
    /// - Parameter userID: the user; nil: no user is signed in.
    /// - Throws: `ResourceError.invalidArgument` for an id that is empty or has more than 100 UTF-16 units.
    public func bind(userID: String?) throws(ResourceError) {
        guard userID.map({ (1...100).contains($0.utf16.count) }) ?? true else {
            throw ResourceError(.invalidArgument, "userID must have 1 to 100 characters")
        }
        sharedState.setOwner(userID ?? "")
        store.refreshObservations()
    }

    // MARK: Working offline

    /// Reports the operating system's network state. The call is optional: the client also detects failures, and after
    /// one it sends nothing for 1, 2, 4 … 60 s.
    public func networkChanged(isAvailable: Bool) { sharedState.networkChanged(isAvailable: isAvailable) }

    /// Switches offline mode on or off (RES8). In offline mode the client sends nothing; when it ends, `run()` sends
    /// all edits. Without a network the call has no effect.
    ///
    /// - Returns: whether the mode changed.
    @discardableResult
    public func setOfflineMode(_ isOn: Bool) -> Bool { sharedState.setOfflineMode(isOn) }

    /// The current connectivity.
    public var status: SyncNetworkStatus { sharedState.status }

    /// The number of fetches since the client was made that the cache could answer.
    public var cacheHitCount: Int { sharedState.hits }
    /// The number of fetches since the client was made that found no usable copy.
    public var cacheMissCount: Int { sharedState.misses }
}
