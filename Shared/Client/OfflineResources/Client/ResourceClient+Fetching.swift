extension ResourceClient {
    /// Fetches one object under its policies (RES2).
    ///
    /// - Parameters:
    ///   - uri: the URI relative to the base URL; the leading slash is optional.
    ///   - policy: overrides the configuration; the response's headers override it. Saved with the resource.
    ///   - headers: further header fields of the request, at most 4,000 bytes. Later refreshes do not send them; use
    ///     the transport's `credentials` for fields of all requests.
    /// - Returns: the object; nil when it does not exist or is not available now.
    /// - Throws: `ResourceError`: `invalidArgument`, `refused`, `signInNeeded`, `answer`, `store`, `userChanged`,
    ///   `cancelled`.
    public func fetchObject(
        _ uri: String, policy: SyncPolicy = SyncPolicy(), headers: ResourceHeaders = ResourceHeaders()
    ) async throws(ResourceError) -> Resource? {
        try await fetcher.fetch(ResourceURI(uri), kind: .item, request: policy, headers: headers).resource
    }

    /// Fetches a file. As `fetchObject`, but with the library defaults of files (RES1).
    ///
    /// - Throws: as `fetchObject`.
    public func fetchFile(
        _ uri: String, policy: SyncPolicy = SyncPolicy(), headers: ResourceHeaders = ResourceHeaders()
    ) async throws(ResourceError) -> Resource? {
        try await fetcher.fetch(ResourceURI(uri), kind: .file, request: policy, headers: headers).resource
    }

    /// Fetches a collection, or one page of it. Each item is also cached separately, with the policies of the
    /// collection. An empty collection in the cache counts as a miss for the ON_CACHE_MISS policies only.
    ///
    /// - Parameters:
    ///   - queryFor: tests that the items must all fulfil. With tests, the call searches the local copies only, online
    ///     too (RES9): the items one level below the path, which were fetched separately or in any page, or were
    ///     created here. The fetch policy has no effect then, and the value is nil when neither the collection nor an
    ///     item of it is cached.
    ///   - limit: the largest number of items; nil: the backend's default, or all with `queryFor`.
    ///   - offset: the number of items to leave out at the start.
    ///   - orderBy: the sort order; sent as `orderBy=a,b:desc`.
    /// - Throws: as `fetchObject`.
    public func fetchCollection(
        _ uri: String, queryFor tests: [ResourceQuery] = [], limit: Int? = nil, offset: Int? = nil,
        orderBy: [SortKey] = [], policy: SyncPolicy = SyncPolicy(), headers: ResourceHeaders = ResourceHeaders()
    ) async throws(ResourceError) -> ResourceCollection? {
        let path = try ResourceURI(uri)
        let page = try path.listed(limit: limit, offset: offset, orderBy: orderBy)
        guard tests.isEmpty else {
            let query = LocalQuery(tests: tests, orderBy: orderBy, offset: offset ?? 0, limit: limit)
            return try await fetcher.query(path, query)
        }
        return try await fetcher.fetch(page, kind: .collection, request: policy, headers: headers).collection
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
