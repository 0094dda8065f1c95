/// Executes fetches under their policies, from the cache or the backend.
struct ResourceFetcher: Sendable {
    let policies: PolicyBook
    let loader: ResourceLoader
    let cache: ResourceCache
    let sharedState: ResourceSharedState

    /// Executes a fetch.
    ///
    /// - Parameter saved: policies of the resource that stay as they are; only the request's policies override them.
    func fetch(
        _ uri: ResourceURI, kind: ResourceKind, request: SyncPolicy, headers: ResourceHeaders = ResourceHeaders(),
        saved: EffectivePolicy? = nil
    ) async throws(ResourceError) -> Loaded {
        if let fault = request.fault { throw ResourceError(.invalidArgument, fault) }
        try headers.check()
        let owner = sharedState.owner
        let uri = try await cache.locate(uri.description, owner: owner)
        var copy = try await cache.copy(uri, owner: owner)
        // A cached collection does not answer a fetch of an object, and the reverse.
        if let found = copy, (found.resource.kind == .collection) != (kind == .collection) { copy = nil }
        let policy =
            saved?.overridden(by: [request])
            ?? policies.policy(of: uri.path, kind: kind, request: request)
        let state = copy?.state ?? .missing
        // The backend does not know this resource yet, so the local version is the only one.
        if uri.isLocal { return try await localResult(of: copy, owner: owner) }
        let isEmpty = copy?.isEmptyCollection ?? false
        var decision = FetchDecision(
            policy, copy: state, isEmptyCollection: isEmpty, isOnline: sharedState.isOnline)
        if case .service(let stores) = decision.action {
            do throws(LoadFailure) {
                let loaded = try await loader.load(
                    uri, kind: kind, request: request, headers: headers, saved: saved, stores: stores, owner: owner)
                sharedState.count(decision.lookup)
                if sharedState.owner == owner { return loaded }
            } catch {
                if case .failed(let error) = error { throw error }
                decision = FetchDecision(policy, copy: state, isEmptyCollection: isEmpty, isOnline: false)
            }
            try sharedState.checkOwner(owner)
        }
        sharedState.count(decision.lookup)
        switch decision.action {
        case .service, .nothing(refreshes: false): return .nothing
        case .nothing(refreshes: true):
            sharedState.add(.init(owner: owner, uri: uri, kind: kind, request: request, headers: headers))
            return .nothing
        case .copy(let refreshes):
            if refreshes {
                _ = try await cache.store.write("scheduling a refresh") { try $0.refreshes.request(uri, owner: owner) }
                sharedState.wake()
            }
            return try await localResult(of: copy, owner: owner)
        }
    }

    /// Searches the local copies of a collection.
    ///
    /// - Returns: nil when neither the collection nor an item of it is cached.
    func query(_ uri: ResourceURI, _ query: LocalQuery) async throws(ResourceError) -> ResourceCollection? {
        let owner = sharedState.owner
        let found = try await cache.collection(uri, query, owner: owner)
        try sharedState.checkOwner(owner)
        sharedState.count(found == nil ? .miss : .hit)
        return found
    }

    /// The local copy as the result of a fetch.
    private func localResult(of copy: LocalCopy?, owner: String) async throws(ResourceError) -> Loaded {
        try sharedState.checkOwner(owner)
        guard let copy else { return .nothing }
        guard copy.resource.kind == .collection else {
            return Resource(copy, isFromCache: true).map(Loaded.resource) ?? .nothing
        }
        return .collection(try await cache.collection(copy, isFromCache: true, owner: owner))
    }
}
