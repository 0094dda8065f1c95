/// What was edited offline, conflicts, pins and eviction.
extension ResourceClient {
    /// The bound user's resources with edits that are not settled, in the order of their first one.
    ///
    /// - Throws: `ResourceError.store`.
    public func loadOfflineResources() async throws(ResourceError) -> [OfflineResource] {
        let (owner, now) = (board.owner, configuration.clock())
        let copies = try await store.write("reading edits") { transaction in
            try transaction.editedResources(owner: owner).compactMap {
                try transaction.copy($0, owner: owner, now: now)
            }
        }
        return copies.map { copy in
            OfflineResource(
                uri: copy.resource.uri.description, resource: Resource(copy, isFromCache: true),
                edits: copy.edits.map { edit in
                    OfflineResource.Edit(
                        kind: edit.kind, id: edit.id, isConflict: edit.state == .conflict, status: edit.status,
                        message: edit.message)
                })
        }
    }

    /// Takes back all edits of a resource; the service's copy stays. One that was sent and not answered may have been
    /// applied: the copy is refreshed then.
    ///
    /// - Returns: whether there were any.
    /// - Throws: `ResourceError`: `invalidArgument`, `store`.
    @discardableResult
    public func discardOfflineUpdates(_ uri: String) async throws(ResourceError) -> Bool {
        let owner = board.owner
        let place = try await locate(uri, owner: owner)
        let found = try await store.write("discarding edits") { try $0.discardEdits(of: place, owner: owner) }
        board.wake()
        return found
    }

    /// Takes back all edits of the bound user.
    ///
    /// - Throws: `ResourceError.store`.
    public func discardOfflineUpdates() async throws(ResourceError) {
        let owner = board.owner
        try await store.write("discarding edits") { transaction in
            for uri in try transaction.editedResources(owner: owner) {
                _ = try transaction.discardEdits(of: uri, owner: owner)
            }
        }
        board.wake()
    }

    /// Has edits that the service refused tried once more; they go with the next run.
    ///
    /// - Returns: whether there were any.
    /// - Throws: `ResourceError`: `invalidArgument`, `store`.
    @discardableResult
    public func retryOfflineUpdates(_ uri: String) async throws(ResourceError) -> Bool {
        let (owner, makeID) = (board.owner, configuration.makeID)
        let place = try await locate(uri, owner: owner)
        let found = try await store.write("retrying edits") { transaction in
            try transaction.retryRefused(place, owner: owner, makeID: makeID)
        }
        board.wake()
        return found
    }

    // MARK: Conflicts

    /// Both versions of a resource that has a conflict; nil: it has none.
    ///
    /// - Throws: `ResourceError`: `invalidArgument`, `store`.
    public func conflict(of uri: String) async throws(ResourceError) -> ResourceConflict? {
        let owner = board.owner
        let place = try await locate(uri, owner: owner)
        guard let copy = try await copy(place, owner: owner), copy.edits.contains(where: { $0.state == .conflict })
        else { return nil }
        return ResourceConflict(
            uri: place.description, local: copy.body, server: copy.resource.body, serverETag: copy.resource.etag)
    }

    /// Ends a conflict. What is to go to the service is a new edit, made on the service's version that `conflict(of:)`
    /// shows; it goes with the next run.
    ///
    /// - Throws: `ResourceError`: `noConflict`, `invalidArgument`, `store`.
    public func resolveConflict(_ uri: String, _ resolution: ConflictResolution) async throws(ResourceError) {
        if case .merged(let body) = resolution, ResourceValue.parse(body) == nil {
            throw ResourceError(.invalidArgument, "a merged version takes JSON")
        }
        let (owner, id) = (board.owner, configuration.makeID())
        let place = try await locate(uri, owner: owner)
        let isResolved = try await store.write("resolving a conflict") { transaction in
            try transaction.resolve(place, with: resolution, id: id, owner: owner)
        }
        guard isResolved else { throw ResourceError(.noConflict, "\(place) has no conflict") }
        board.wake()
    }

    // MARK: Pins and eviction

    /// Says how urgently a copy is refreshed; nil: no more than others.
    ///
    /// - Throws: `ResourceError`: `notCached`, `invalidArgument`, `store`.
    public func pinResource(_ uri: String, _ pin: PinPriority?) async throws(ResourceError) {
        let owner = board.owner
        let place = try await locate(uri, owner: owner)
        guard try await store.write("pinning", { try $0.pin(place, pin, owner: owner) }) else {
            throw ResourceError(.notCached, "\(place) is not cached: fetch it, then pin it")
        }
    }

    /// Deletes a local copy, unless it has edits.
    ///
    /// - Returns: whether it was there.
    /// - Throws: `ResourceError`: `invalidArgument`, `store`.
    @discardableResult
    public func evict(_ uri: String) async throws(ResourceError) -> Bool {
        let owner = board.owner
        let place = try await locate(uri, owner: owner)
        return try await store.write("evicting") { try $0.evict(place, owner: owner) }
    }

    /// Deletes all local copies of the bound user that have no edits.
    ///
    /// - Throws: `ResourceError.store`.
    public func evictAll() async throws(ResourceError) {
        let owner = board.owner
        try await store.write("evicting") { try $0.evictAll(owner: owner) }
    }
}
