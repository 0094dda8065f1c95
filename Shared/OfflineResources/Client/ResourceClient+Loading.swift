import Foundation
import Logging

/// How versions come from the service.
extension ResourceClient {
    /// Asks the service, and keeps what it answers.
    ///
    /// - Parameters:
    ///   - saved: the policies that stay; nil: the configuration's and the request's.
    ///   - stores: false: nothing is kept.
    ///   - isForConflict: it is kept whatever room there is, in place of any version that is here.
    func load(
        _ uri: ResourceURI, kind: ResourceKind, request: SyncPolicy = SyncPolicy(), saved: EffectivePolicy? = nil,
        stores: Bool = true, isForConflict: Bool = false, owner: String
    ) async throws(LoadFailure) -> Loaded {
        let (copy, since) = try await stored("reading a copy") { [clock = configuration.clock] transaction in
            (try transaction.copy(uri, owner: owner, now: clock()), try transaction.lastChange())
        }
        var headers = ResourceHeaders()
        headers.add("Accept", kind == .file ? "*/*" : "application/json, */*;q=0.5")
        let isWhole = copy.map { kind == .collection ? $0.state != .missing : $0.resource.body != nil } ?? false
        if stores, isWhole, let tag = copy?.resource.etag { headers.add("If-None-Match", tag) }
        let response = try await exchange(
            ResourceRequest(method: "GET", uri: uri.description, headers: headers), owner: owner)
        let now = configuration.clock()
        let said = PolicyHeaders(response.headers, now: now)
        let actual = kind == .collection ? kind : said.kind.flatMap { $0 == .collection ? nil : $0 } ?? kind
        let policy =
            saved?.overridden(by: [said.policy])
            ?? configuration.policies.policy(of: uri.path, kind: actual, request: request, response: said.policy)
        switch response.status {
        case 304 where isWhole:
            try await stored("keeping a copy") { [asOf = asOf(response)] transaction in
                try transaction.confirmNewest(uri, policy: policy, asOf: asOf, owner: owner, now: now)
            }
            let whole = try await loaded(uri, owner: owner)
            // From now on it is not to be stored; who asked still gets it.
            if policy.noCache { try await stored("forgetting a copy") { _ = try $0.evict(uri, owner: owner) } }
            return whole
        case 200...299:
            let version = ServiceVersion(
                uri: uri, kind: actual, body: response.body, contentType: response.headers["Content-Type"],
                etag: tag(response), asOf: asOf(response), policy: policy)
            let isKept = (stores && !policy.noCache) || isForConflict
            return kind == .collection
                ? try await keep(collection: version, request: request, since: since, isKept: isKept, owner: owner)
                : try await keep(
                    version, since: isForConflict ? nil : since, isForced: isForConflict, isKept: isKept, owner: owner)
        case 404, 410:
            let isChanged = try await stored("forgetting a resource") { try $0.remove(uri, owner: owner) }
            if isChanged { await tellChanged([uri], owner: owner) }
            return .nothing
        default: throw .failed(refusal(response, of: uri))
        }
    }

    private func keep(
        _ version: ServiceVersion, since: Int64?, isForced: Bool, isKept: Bool, owner: String
    ) async throws(LoadFailure) -> Loaded {
        let now = configuration.clock()
        guard isKept else {
            // What is not to be stored is not to be there from before.
            if version.policy.noCache {
                try await stored("forgetting a copy") { _ = try $0.evict(version.uri, owner: owner) }
            }
            return .resource(Resource(version, at: now))
        }
        let change = try await stored("storing a version") { transaction in
            try transaction.store(version, owner: owner, since: since, now: now, ignoresLimit: isForced)
        }
        if change == .changed { await tellChanged([version.uri], owner: owner) }
        guard change != .notStored else {
            logger.debug("the cache is full; a resource is not stored", metadata: ["uri": "\(version.uri)"])
            return .resource(Resource(version, at: now))
        }
        return try await loaded(version.uri, owner: owner)
    }

    private func keep(
        collection: ServiceVersion, request: SyncPolicy, since: Int64, isKept: Bool, owner: String
    ) async throws(LoadFailure) -> Loaded {
        let now = configuration.clock()
        let answer: CollectionAnswer
        do throws(ResourceError) {
            answer = try CollectionAnswer(
                collection.body, of: collection.uri, keys: configuration.itemKeys, locate: reference)
        } catch {
            throw .failed(error)
        }
        let items = answer.items.map { item in
            var policy = configuration.policies.policy(of: item.uri.path, kind: .item, request: request)
            // What the response says of the collection holds for its items.
            policy.noCache = collection.policy.noCache
            (policy.expirationPolicy, policy.expireAfter) = (
                collection.policy.expirationPolicy, collection.policy.expireAfter
            )
            policy.evictionPolicy = collection.policy.evictionPolicy
            return ServiceVersion(
                uri: item.uri, kind: .item, body: item.body, contentType: "application/json", etag: item.etag,
                asOf: collection.asOf, policy: policy)
        }
        let fresh = ResourceCollection(
            uri: collection.uri.description, items: items.map { Resource($0, at: now) }, etag: collection.etag,
            isFromCache: false, isExpired: false)
        guard isKept else { return .collection(fresh) }
        let outcome = try await stored("storing a collection") { transaction in
            try transaction.store(
                collection, items: items, isAll: collection.uri.query == nil, owner: owner, since: since, now: now)
        }
        var changed = outcome.changed
        if outcome.change == .changed { changed.append(collection.uri) }
        await tellChanged(changed, owner: owner)
        return outcome.change == .notStored ? .collection(fresh) : try await loaded(collection.uri, owner: owner)
    }

    /// What is here now, as just fetched.
    private func loaded(_ uri: ResourceURI, owner: String) async throws(LoadFailure) -> Loaded {
        do throws(ResourceError) {
            guard let copy = try await copy(uri, owner: owner) else { return .nothing }
            guard copy.resource.kind == .collection else {
                return Resource(copy, isFromCache: false).map(Loaded.resource) ?? .nothing
            }
            return .collection(
                try await collection(copy.resource, state: copy.state, isFromCache: false, owner: owner))
        } catch {
            throw .failed(error)
        }
    }

    // MARK: Requests

    /// Sends a request in a user's name.
    ///
    /// - Throws: `unreachable` also when the service says that it does not answer now.
    func exchange(_ request: ResourceRequest, owner: String) async throws(LoadFailure) -> ResourceResponse {
        var request = request
        request.userID = owner.isEmpty ? nil : owner
        let response: ResourceResponse
        do {
            response = try await transport.send(request)
        } catch {
            switch error {
            case .notSent, .noAnswer:
                board.failed(at: configuration.clock(), retryAfter: nil)
                logger.debug("the service was not reached", metadata: ["reason": "\(error)"])
                if case .notSent = error { throw .unreachable(mayHaveArrived: false) }
                throw .unreachable(mayHaveArrived: true)
            case .unusable(let reason): throw .failed(ResourceError(.answer, "\(request.uri): \(reason)"))
            case .noCredentials(let reason):
                throw .failed(ResourceError(.signInNeeded, "no credentials for \(request.uri): \(reason)"))
            case .cancelled: throw .failed(ResourceError(.cancelled, "the request for \(request.uri) was cancelled"))
            }
        }
        if EditVerdict.isPassing(response.status) {
            let seconds = response.headers["Retry-After"].flatMap(Double.init)
            board.failed(at: configuration.clock(), retryAfter: seconds)
            throw .unreachable(mayHaveArrived: true)
        }
        if board.answered() { board.wake() }
        try await noteBatchPath(response)
        return response
    }

    private func noteBatchPath(_ response: ResourceResponse) async throws(LoadFailure) {
        guard let header = response.headers["MSS-Sync-Batch"] else { return }
        let path = reference(header)?.description
        try await stored("noting the way of batches") { transaction in
            if try transaction.batchPath() != path { try transaction.setBatchPath(path) }
        }
    }

    /// What an answer names, as a URI below the base URL.
    func reference(_ text: String) -> ResourceURI? {
        guard !text.isEmpty, let relative = transport.relative(text) else { return nil }
        return try? ResourceURI(relative)
    }

    func tag(_ response: ResourceResponse) -> String? {
        response.headers["ETag"].flatMap { ETag.isWellFormed($0) ? $0 : nil }
    }

    /// A response's time is given in whole seconds: it was the newest until the end of that second.
    func asOf(_ response: ResourceResponse) -> Date {
        response.headers["Date"].flatMap(HTTPDate.parse)?.addingTimeInterval(0.999) ?? configuration.clock()
    }

    func refusal(_ response: ResourceResponse, of uri: ResourceURI) -> ResourceError {
        response.status == 401
            ? ResourceError(.signInNeeded, "the service does not know who asks for \(uri); sign in", status: 401)
            : ResourceError(
                .refused, "the service answered \(uri) with status \(response.status)", status: response.status)
    }

    func stored<Value: Sendable>(
        _ doing: String, _ body: @Sendable (StoreTransaction) throws -> Value
    ) async throws(LoadFailure) -> Value {
        do throws(ResourceError) {
            return try await store.write(doing, body)
        } catch {
            throw .failed(error)
        }
    }

    // MARK: Telling

    /// Tells the app of copies that changed by the service.
    func tellChanged(_ uris: [ResourceURI], owner: String) async {
        guard let callbacks = configuration.callbacks else { return }
        for uri in uris {
            guard board.owner == owner else { return }
            let resource = try? await current(uri, owner: owner)
            await callbacks.cachedResourceChanged(uri: uri.description, resource: resource)
        }
    }
}
