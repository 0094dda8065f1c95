import MobileSync

/// Offline edits, conflicts, pins and eviction.
extension ResourceClient {
    /// Lists the bound user's resources with edits that the backend has not applied, in the order of their first edits.
    ///
    /// - Throws: `ResourceError.store`.
    public func loadOfflineResources() async throws(ResourceError) -> [OfflineResource] {
        let (owner, now) = (sharedState.owner, configuration.clock())
        let copies = try await store.read("reading edits") { transaction in
            try transaction.edits.editedResources(owner: owner).compactMap {
                try transaction.copies.copy($0, owner: owner, now: now)
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

    /// Discards all edits of a resource; the backend's version stays. The backend may already have applied an edit that
    /// was sent without a response, so the copy is then refreshed.
    ///
    /// - Returns: whether there were edits.
    /// - Throws: `ResourceError`: `invalidArgument`, `store`.
    @discardableResult
    public func discardOfflineUpdates(_ uri: String) async throws(ResourceError) -> Bool {
        let owner = sharedState.owner
        let place = try await cache.locate(uri, owner: owner)
        let found = try await store.write("discarding edits") { try $0.edits.discardEdits(of: place, owner: owner) }
        sharedState.wake()
        return found
    }

    /// Discards all edits of the bound user.
    ///
    /// - Throws: `ResourceError.store`.
    public func discardOfflineUpdates() async throws(ResourceError) {
        let owner = sharedState.owner
        try await store.write("discarding edits") { transaction in
            for uri in try transaction.edits.editedResources(owner: owner) {
                _ = try transaction.edits.discardEdits(of: uri, owner: owner)
            }
        }
        sharedState.wake()
    }

    /// Queues edits again that the backend refused; the next run sends them.
    ///
    /// - Returns: whether there were refused edits.
    /// - Throws: `ResourceError`: `invalidArgument`, `store`.
    @discardableResult
    public func retryOfflineUpdates(_ uri: String) async throws(ResourceError) -> Bool {
        let (owner, makeID) = (sharedState.owner, configuration.makeID)
        let place = try await cache.locate(uri, owner: owner)
        let found = try await store.write("retrying edits") { transaction in
            try transaction.edits.retryRefused(place, owner: owner, makeID: makeID)
        }
        sharedState.wake()
        return found
    }

    // MARK: Conflicts

    /// Returns both versions of a resource that has a conflict; nil when it has none.
    ///
    /// - Throws: `ResourceError`: `invalidArgument`, `store`.
    public func conflict(of uri: String) async throws(ResourceError) -> ResourceConflict? {
        let owner = sharedState.owner
        let place = try await cache.locate(uri, owner: owner)
        guard let copy = try await cache.copy(place, owner: owner),
            copy.edits.contains(where: { $0.state == .conflict })
        else { return nil }
        return ResourceConflict(
            uri: place.description, local: copy.body, server: copy.resource.body, serverETag: copy.resource.etag)
    }

    /// Ends a conflict (RES4). The chosen version is a new edit, made on the version of the backend that
    /// `conflict(of:)` returned; the next run sends it.
    ///
    /// - Throws: `ResourceError`: `noConflict`, `invalidArgument`, `store`.
    public func resolveConflict(_ uri: String, _ resolution: ConflictResolution) async throws(ResourceError) {
        if case .merged(let body) = resolution, JSONValue.parse(body) == nil {
            throw ResourceError(.invalidArgument, "a merged version must be JSON")
        }
        let (owner, id) = (sharedState.owner, configuration.makeID())
        let place = try await cache.locate(uri, owner: owner)
        let isResolved = try await store.write("resolving a conflict") { transaction in
            try transaction.edits.resolve(place, with: resolution, id: id, owner: owner)
        }
        guard isResolved else { throw ResourceError(.noConflict, "\(place) has no conflict") }
        sharedState.wake()
    }

    // MARK: Pins and eviction

    /// Sets the priority of a resource, for sending its edits and refreshing its copy (RES8).
    ///
    /// - Parameter pin: the priority; nil: not pinned, which is between `Normal` and `Low`.
    /// - Throws: `ResourceError`: `notCached`, `invalidArgument`, `store`.
    public func pinResource(_ uri: String, _ pin: PinPriority?) async throws(ResourceError) {
        let owner = sharedState.owner
        let place = try await cache.locate(uri, owner: owner)
        guard try await store.write("pinning", { try $0.refreshes.pin(place, pin, owner: owner) }) else {
            throw ResourceError(.notCached, "\(place) is not cached; fetch it, then pin it")
        }
    }

    /// Deletes a local copy, unless it has edits.
    ///
    /// - Returns: whether a copy was deleted.
    /// - Throws: `ResourceError`: `invalidArgument`, `store`.
    @discardableResult
    public func evict(_ uri: String) async throws(ResourceError) -> Bool {
        let owner = sharedState.owner
        let place = try await cache.locate(uri, owner: owner)
        return try await store.write("evicting") { try $0.resources.evict(place, owner: owner) }
    }

    /// Deletes all local copies of the bound user that have no edits.
    ///
    /// - Throws: `ResourceError.store`.
    public func evictAll() async throws(ResourceError) {
        let owner = sharedState.owner
        try await store.write("evicting") { try $0.resources.evictAll(owner: owner) }
    }
}
