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
        _ uri: ResourceURI, kind: ResourceKind, request: SyncPolicy, saved: EffectivePolicy? = nil
    ) async throws(ResourceError) -> Loaded {
        if let fault = request.fault { throw ResourceError(.invalidArgument, fault) }
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
        var decision = FetchDecision(policy, copy: state, isOnline: sharedState.isOnline)
        if case .service(let stores) = decision.action {
            do throws(LoadFailure) {
                let loaded = try await loader.load(
                    uri, kind: kind, request: request, saved: saved, stores: stores, owner: owner)
                sharedState.count(decision.lookup)
                if sharedState.owner == owner { return loaded }
            } catch {
                if case .failed(let error) = error { throw error }
                decision = FetchDecision(policy, copy: state, isOnline: false)
            }
            try sharedState.checkOwner(owner)
        }
        sharedState.count(decision.lookup)
        switch decision.action {
        case .service, .nothing(refreshes: false): return .nothing
        case .nothing(refreshes: true):
            sharedState.add(.init(owner: owner, uri: uri, kind: kind, request: request))
            return .nothing
        case .copy(let refreshes):
            if refreshes {
                _ = try await cache.store.write("scheduling a refresh") { try $0.refreshes.request(uri, owner: owner) }
                sharedState.wake()
            }
            return try await localResult(of: copy, owner: owner)
        }
    }

    /// The local copy as the result of a fetch.
    private func localResult(of copy: LocalCopy?, owner: String) async throws(ResourceError) -> Loaded {
        try sharedState.checkOwner(owner)
        guard let copy else { return .nothing }
        guard copy.resource.kind == .collection else {
            return Resource(copy, isFromCache: true).map(Loaded.resource) ?? .nothing
        }
        return .collection(
            try await cache.collection(copy.resource, state: copy.state, isFromCache: true, owner: owner))
    }
}
