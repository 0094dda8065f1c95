import GRDB

/// Live data: the local copies of the bound user, with the app's own edits (RES11). Observations read beside the writer
/// and send nothing to the backend; `run()`, pushes and fetches bring new versions.
extension ResourceClient {
    /// Observes one object or file: `for try await incident in try resources.observe("/incidents/17")`.
    ///
    /// - Parameter uri: the URI relative to the base URL. A temporary URI also leads to the resource after the backend
    ///   has named it.
    /// - Returns: the local version; nil while there is none.
    /// - Throws: `ResourceError.invalidArgument`.
    public func observe(_ uri: String) throws(ResourceError) -> ResourceObservation<Resource?> {
        ResourceObservation(observed(try ResourceURI(uri))) { $0 }
    }

    /// Observes one object as a value.
    ///
    /// - Throws: as `observe`; the sequence also throws `ResourceError.decoding` when a body has another form.
    public func observe<Value: Decodable & Sendable>(
        _ type: Value.Type, _ uri: String
    ) throws(ResourceError) -> ResourceObservation<TypedResource<Value>?> {
        ResourceObservation(observed(try ResourceURI(uri))) { [coding = configuration.coding] resource in
            try resource.map { TypedResource(value: try coding.value(type, of: $0), resource: $0) }
        }
    }

    /// Observes a cached collection, or one page of it.
    ///
    /// - Parameters: as for `fetchCollection`, which must have fetched the same page. With `queryFor`, all local copies
    ///   of items are searched.
    /// - Returns: the collection; nil while it is not cached, and while an item of it is missing.
    /// - Throws: `ResourceError.invalidArgument`.
    public func observeCollection(
        _ uri: String, queryFor tests: [ResourceQuery] = [], limit: Int? = nil, offset: Int? = nil,
        orderBy: [SortKey] = []
    ) throws(ResourceError) -> ResourceObservation<ResourceCollection?> {
        let (path, owner, clock) = (try ResourceURI(uri), sharedState.owner, configuration.clock)
        let page = try path.listed(limit: limit, offset: offset, orderBy: orderBy)
        let query = LocalQuery(tests: tests, orderBy: orderBy, offset: offset ?? 0, limit: limit)
        let read: @Sendable (StoreTransaction) throws -> ResourceCollection? = { [sharedState] transaction in
            try sharedState.checkOwner(owner)
            guard tests.isEmpty else {
                return try ResourceCache.collection(path, query, owner: owner, now: clock(), in: transaction)
            }
            let place = try transaction.aliases.located(page, owner: owner)
            guard let copy = try transaction.copies.copy(place, owner: owner, now: clock()),
                copy.resource.kind == .collection, copy.state != .missing
            else { return nil }
            return try ResourceCache.collection(
                copy, isFromCache: true, owner: owner, now: clock(), in: transaction)
        }
        return ResourceObservation({ [store] in store.observe(read) }, transform: { $0 })
    }

    private func observed(_ uri: ResourceURI) -> @Sendable () -> AsyncValueObservation<Resource?> {
        let (owner, clock) = (sharedState.owner, configuration.clock)
        let read: @Sendable (StoreTransaction) throws -> Resource? = { [sharedState] transaction in
            try sharedState.checkOwner(owner)
            let place = try transaction.aliases.located(uri, owner: owner)
            return try transaction.copies.copy(place, owner: owner, now: clock())
                .flatMap { Resource($0, isFromCache: true) }
        }
        return { [store] in store.observe(read) }
    }
}
