extension ResourceClient {
    /// One object, by its policies; nil: there is none, or none can be had now.
    ///
    /// - Parameters:
    ///   - uri: below the base URL; the leading slash is optional.
    ///   - policy: stronger than the configuration's, weaker than the response's headers. Saved with the resource.
    /// - Throws: `ResourceError`: `invalidArgument`, `refused`, `signInNeeded`, `answer`, `store`, `userChanged`.
    public func fetchObject(_ uri: String, policy: SyncPolicy = SyncPolicy()) async throws(ResourceError) -> Resource? {
        try await fetch(ResourceURI(uri), kind: .item, request: policy).resource
    }

    /// A file's bytes; as `fetchObject`, with library defaults of its own.
    ///
    /// - Throws: As `fetchObject`.
    public func fetchFile(_ uri: String, policy: SyncPolicy = SyncPolicy()) async throws(ResourceError) -> Resource? {
        try await fetch(ResourceURI(uri), kind: .file, request: policy).resource
    }

    /// A collection or one page of it, whose items are cached each for itself; nil: none can be had now. Offline an
    /// empty collection counts as none.
    ///
    /// - Parameters:
    ///   - limit: of items; nil: the service's own.
    ///   - offset: items that are left out at the start.
    ///   - orderBy: sent as `orderBy=a,b:desc`.
    /// - Throws: As `fetchObject`.
    public func fetchCollection(
        _ uri: String, limit: Int? = nil, offset: Int? = nil, orderBy: [SortKey] = [],
        policy: SyncPolicy = SyncPolicy()
    ) async throws(ResourceError) -> ResourceCollection? {
        let uri = try ResourceURI(uri).listed(limit: limit, offset: offset, orderBy: orderBy)
        return try await fetch(uri, kind: .collection, request: policy).collection
    }

    /// The local copies of a collection's items, online too, whose property compares so with the value: those one level
    /// below its path that were fetched by themselves or in any page, and what was created here.
    ///
    /// - Parameters:
    ///   - uri: the collection's.
    ///   - property: a member, or one inside it by dots: `address.city`.
    /// - Throws: `ResourceError`: `invalidArgument`, `store`.
    public func queryFor(
        _ property: String, _ comparison: Comparison, _ value: ResourceValue, in uri: String
    ) async throws(ResourceError) -> [Resource] {
        let (path, owner, now) = (try ResourceURI(uri), board.owner, configuration.clock())
        let copies = try await store.write("querying copies") { transaction in
            try transaction.children(of: transaction.located(path, owner: owner).path, owner: owner, now: now)
        }
        try checkStill(owner)
        return copies.compactMap { Resource($0, isFromCache: true) }.filter {
            comparison.holds($0.json?[property], value)
        }
    }

    /// A resource anew.
    ///
    /// - Parameters:
    ///   - discardOfflineUpdates: takes its edits back first; the service's version stays.
    ///   - reloadFromService: asks the service; otherwise the copy is given.
    /// - Returns: nil: there is none, or the service cannot be reached.
    /// - Throws: As `fetchObject`.
    public func reloadResource(
        _ uri: String, discardOfflineUpdates: Bool, reloadFromService: Bool
    ) async throws(ResourceError) -> Resource? {
        let owner = board.owner
        if discardOfflineUpdates { try await self.discardOfflineUpdates(uri) }
        let located = try await locate(uri, owner: owner)
        let saved = try await copy(located, owner: owner)?.resource
        let policy = SyncPolicy(fetchPolicy: reloadFromService ? .fetchFromService : .fetchFromCache)
        return try await fetch(located, kind: saved?.kind ?? .item, request: policy, saved: saved?.policy).resource
    }

    // MARK: Rules

    /// - Parameter saved: keeps the policies that were saved with the resource, but for where this fetch looks.
    private func fetch(
        _ uri: ResourceURI, kind: ResourceKind, request: SyncPolicy, saved: EffectivePolicy? = nil
    ) async throws(ResourceError) -> Loaded {
        if let fault = request.fault { throw ResourceError(.invalidArgument, fault) }
        let owner = board.owner
        let uri = try await locate(uri.description, owner: owner)
        var copy = try await copy(uri, owner: owner)
        // What is cached as a collection is no object, and the other way round.
        if let found = copy, (found.resource.kind == .collection) != (kind == .collection) { copy = nil }
        let policy =
            saved?.overridden(by: [request])
            ?? configuration.policies.policy(of: uri.path, kind: kind, request: request)
        let state = copy?.state ?? .missing
        // The service knows nothing of it yet: there is only what is here.
        if uri.isLocal { return try await given(copy, owner: owner) }
        var decision = FetchDecision(policy, copy: state, isOnline: isOnline)
        if case .service(let stores) = decision.action {
            do throws(LoadFailure) {
                let loaded = try await load(
                    uri, kind: kind, request: request, saved: saved, stores: stores, owner: owner)
                board.count(decision.lookup)
                if board.owner == owner { return loaded }
            } catch {
                if case .failed(let error) = error { throw error }
                decision = FetchDecision(policy, copy: state, isOnline: false)
            }
            try checkStill(owner)
        }
        board.count(decision.lookup)
        switch decision.action {
        case .service, .nothing(refreshes: false): return .nothing
        case .nothing(refreshes: true):
            board.add(.init(owner: owner, uri: uri, kind: kind, request: request))
            return .nothing
        case .copy(let refreshes):
            if refreshes {
                _ = try await store.write("scheduling a refresh") { try $0.wish(for: uri, owner: owner) }
                board.wake()
            }
            return try await given(copy, owner: owner)
        }
    }

    /// The copy as the app sees it.
    private func given(_ copy: LocalCopy?, owner: String) async throws(ResourceError) -> Loaded {
        try checkStill(owner)
        guard let copy else { return .nothing }
        guard copy.resource.kind == .collection else {
            return Resource(copy, isFromCache: true).map(Loaded.resource) ?? .nothing
        }
        return .collection(try await collection(copy.resource, state: copy.state, isFromCache: true, owner: owner))
    }

    func collection(
        _ row: StoredResource, state: CopyState, isFromCache: Bool, owner: String
    ) async throws(ResourceError) -> ResourceCollection {
        let now = configuration.clock()
        let items = try await store.write("reading a collection") { transaction in
            try transaction.items(of: row, owner: owner, now: now)
        }
        return ResourceCollection(
            uri: row.uri.description, items: items.compactMap { Resource($0, isFromCache: isFromCache) },
            etag: row.etag, isFromCache: isFromCache, isExpired: state == .expired)
    }

    func copy(_ uri: ResourceURI, owner: String) async throws(ResourceError) -> LocalCopy? {
        let now = configuration.clock()
        return try await store.write("reading a copy") { try $0.copy(uri, owner: owner, now: now) }
    }

    /// A caller's URI, where the service has it.
    func locate(_ uri: String, owner: String) async throws(ResourceError) -> ResourceURI {
        let parsed = try ResourceURI(uri)
        return try await store.write("finding a resource") { try $0.located(parsed, owner: owner) }
    }

    /// As it is here now; nil: deleted.
    func current(_ uri: ResourceURI, owner: String) async throws(ResourceError) -> Resource? {
        try await copy(uri, owner: owner).flatMap { Resource($0, isFromCache: true) }
    }
}
