extension ResourceClient {
    /// Fetches one object under its policies (RES2).
    ///
    /// - Parameters:
    ///   - uri: the URI relative to the base URL; the leading slash is optional.
    ///   - policy: overrides the configuration; the response's headers override it. Saved with the resource.
    /// - Returns: the object; nil when it does not exist or is not available now.
    /// - Throws: `ResourceError`: `invalidArgument`, `refused`, `signInNeeded`, `answer`, `store`, `userChanged`,
    ///   `cancelled`.
    public func fetchObject(_ uri: String, policy: SyncPolicy = SyncPolicy()) async throws(ResourceError) -> Resource? {
        try await fetcher.fetch(ResourceURI(uri), kind: .item, request: policy).resource
    }

    /// Fetches a file. As `fetchObject`, but with the library defaults of files (RES1).
    ///
    /// - Throws: as `fetchObject`.
    public func fetchFile(_ uri: String, policy: SyncPolicy = SyncPolicy()) async throws(ResourceError) -> Resource? {
        try await fetcher.fetch(ResourceURI(uri), kind: .file, request: policy).resource
    }

    /// Fetches a collection, or one page of it. Each item is also cached separately. Offline, an empty collection in
    /// the cache counts as a miss.
    ///
    /// - Parameters:
    ///   - limit: the largest number of items; nil: the backend's default.
    ///   - offset: the number of items to leave out at the start.
    ///   - orderBy: the sort order; sent as `orderBy=a,b:desc`.
    /// - Throws: as `fetchObject`.
    public func fetchCollection(
        _ uri: String, limit: Int? = nil, offset: Int? = nil, orderBy: [SortKey] = [],
        policy: SyncPolicy = SyncPolicy()
    ) async throws(ResourceError) -> ResourceCollection? {
        let uri = try ResourceURI(uri).listed(limit: limit, offset: offset, orderBy: orderBy)
        return try await fetcher.fetch(uri, kind: .collection, request: policy).collection
    }

    /// Searches the local copies of a collection's items, online too. The search covers items one level below the
    /// collection's path: items that were fetched separately or in any page, and items that were created here (RES9).
    ///
    /// - Parameters:
    ///   - uri: the URI of the collection.
    ///   - property: the member to compare; dots lead to an inner member: `address.city`.
    /// - Returns: the items whose property fulfils the comparison with `value`.
    /// - Throws: `ResourceError`: `invalidArgument`, `store`, `userChanged`.
    public func queryFor(
        _ property: String, _ comparison: Comparison, _ value: ResourceValue, in uri: String
    ) async throws(ResourceError) -> [Resource] {
        let (path, owner, now) = (try ResourceURI(uri), sharedState.owner, configuration.clock())
        let copies = try await store.write("querying copies") { transaction in
            try transaction.copies.children(
                of: transaction.aliases.located(path, owner: owner).path, owner: owner, now: now)
        }
        try sharedState.checkOwner(owner)
        return copies.compactMap { Resource($0, isFromCache: true) }.filter {
            comparison.holds($0.json?[property], value)
        }
    }

    /// Loads a resource again, with the policies that are saved with it.
    ///
    /// - Parameters:
    ///   - discardOfflineUpdates: discards the resource's edits first; the backend's version stays.
    ///   - reloadFromService: true: fetches from the backend; false: returns the local copy.
    /// - Returns: the resource; nil when it does not exist or the backend cannot be reached.
    /// - Throws: as `fetchObject`.
    public func reloadResource(
        _ uri: String, discardOfflineUpdates: Bool, reloadFromService: Bool
    ) async throws(ResourceError) -> Resource? {
        let owner = sharedState.owner
        if discardOfflineUpdates { try await self.discardOfflineUpdates(uri) }
        let located = try await cache.locate(uri, owner: owner)
        let saved = try await cache.copy(located, owner: owner)?.resource
        let policy = SyncPolicy(fetchPolicy: reloadFromService ? .fetchFromService : .fetchFromCache)
        return try await fetcher.fetch(located, kind: saved?.kind ?? .item, request: policy, saved: saved?.policy)
            .resource
    }
}
