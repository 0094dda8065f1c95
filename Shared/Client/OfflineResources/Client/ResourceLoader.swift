import Foundation
import Logging

/// Loads versions from the backend and stores them.
struct ResourceLoader: Sendable {
    let configuration: ResourceConfiguration
    let exchange: BackendExchange
    let cache: ResourceCache
    let notifier: CallbackNotifier
    let logger: Logger

    /// Sends a `GET` and stores the response.
    ///
    /// - Parameters:
    ///   - requested: the header fields of the request.
    ///   - saved: the policies to keep; nil: those of the configuration and the request.
    ///   - stores: false: the response is not stored.
    ///   - isForConflict: the response is stored in spite of `maxStoreSize`, and replaces any stored version. The app
    ///     is not notified: the caller does it after it has marked the edit.
    func load(
        _ uri: ResourceURI, kind: ResourceKind, request: SyncPolicy = SyncPolicy(),
        headers requested: ResourceHeaders = ResourceHeaders(), saved: EffectivePolicy? = nil, stores: Bool = true,
        isForConflict: Bool = false, owner: String
    ) async throws(LoadFailure) -> Loaded {
        let (copy, since) = try await cache.read("reading a copy") { [clock = cache.clock] transaction in
            (try transaction.copies.copy(uri, owner: owner, now: clock()), try transaction.lastChange())
        }
        var headers = ResourceHeaders()
        headers.add("Accept", kind == .file ? "*/*" : "application/json, */*;q=0.5")
        let isWhole = copy.map { kind == .collection ? $0.state != .missing : $0.resource.body != nil } ?? false
        headers.merge(requested)
        if stores, isWhole, let tag = copy?.resource.etag { headers.add("If-None-Match", tag) }
        let response = try await exchange.send(
            ResourceRequest(method: "GET", uri: uri.description, headers: headers), owner: owner)
        let now = cache.clock()
        let said = PolicyHeaders(response.headers, now: now)
        let actual = kind == .collection ? kind : said.kind.flatMap { $0 == .collection ? nil : $0 } ?? kind
        let policy =
            saved?.overridden(by: [said.policy])
            ?? configuration.policies.policy(of: uri.path, kind: actual, request: request, response: said.policy)
        switch response.status {
        case 304 where isWhole:
            try await cache.stored("confirming a copy") { [asOf = exchange.asOf(response)] transaction in
                try transaction.versions.confirmNewest(uri, policy: policy, asOf: asOf, owner: owner, now: now)
            }
            let whole = try await loaded(uri, owner: owner)
            // The response forbids storing from now on. The caller still gets the version.
            if policy.noCache {
                try await cache.stored("evicting a copy") { _ = try $0.resources.evict(uri, owner: owner) }
            }
            return whole
        case 200...299:
            let version = ServiceVersion(
                uri: uri, kind: actual, body: response.body, contentType: response.headers["Content-Type"],
                etag: exchange.tag(response), asOf: exchange.asOf(response), policy: policy)
            let isKept = (stores && !policy.noCache) || isForConflict
            return kind == .collection
                ? try await keep(collection: version, since: since, isKept: isKept, owner: owner)
                : try await keep(
                    version, since: isForConflict ? nil : since, isForced: isForConflict, isKept: isKept, owner: owner)
        case 404, 410:
            let isChanged = try await cache.stored("removing a resource") { try $0.versions.remove(uri, owner: owner) }
            if isChanged, !isForConflict { await notifier.notifyChanged([uri], owner: owner) }
            return .nothing
        default: throw .failed(exchange.refusal(response, of: uri))
        }
    }

    private func keep(
        _ version: ServiceVersion, since: Int64?, isForced: Bool, isKept: Bool, owner: String
    ) async throws(LoadFailure) -> Loaded {
        let now = cache.clock()
        guard isKept else {
            // A resource that must not be stored must not stay stored from earlier.
            if version.policy.noCache {
                try await cache.stored("evicting a copy") { _ = try $0.resources.evict(version.uri, owner: owner) }
            }
            return .resource(Resource(version, at: now))
        }
        let change = try await cache.stored("storing a version") { transaction in
            try transaction.versions.store(version, owner: owner, since: since, now: now, ignoresLimit: isForced)
        }
        if change == .changed, !isForced { await notifier.notifyChanged([version.uri], owner: owner) }
        guard change != .notStored else {
            logger.debug("the cache is full; a fetched resource is not stored", metadata: ["uri": "\(version.uri)"])
            return .resource(Resource(version, at: now))
        }
        return try await loaded(version.uri, owner: owner)
    }

    private func keep(
        collection: ServiceVersion, since: Int64, isKept: Bool, owner: String
    ) async throws(LoadFailure) -> Loaded {
        let now = cache.clock()
        let answer: CollectionAnswer
        do throws(ResourceError) {
            answer = try CollectionAnswer(
                collection.body, of: collection.uri, keys: configuration.itemKeys, locate: exchange.reference)
        } catch {
            throw .failed(error)
        }
        // An item that is fetched through a collection has the collection's policies, not those of its own path.
        let items = answer.items.map { item in
            ServiceVersion(
                uri: item.uri, kind: .item, body: item.body, contentType: "application/json", etag: item.etag,
                asOf: collection.asOf, policy: collection.policy)
        }
        let fresh = ResourceCollection(
            uri: collection.uri.description, items: items.map { Resource($0, at: now) }, etag: collection.etag,
            isFromCache: false, isExpired: false)
        guard isKept else { return .collection(fresh) }
        let outcome = try await cache.stored("storing a collection") { transaction in
            try transaction.versions.store(
                collection, items: items, isAll: collection.uri.query == nil, owner: owner, since: since, now: now)
        }
        var changed = outcome.changed
        if outcome.change == .changed { changed.append(collection.uri) }
        await notifier.notifyChanged(changed, owner: owner)
        return outcome.change == .notStored ? .collection(fresh) : try await loaded(collection.uri, owner: owner)
    }

    /// The stored version, marked as just fetched.
    private func loaded(_ uri: ResourceURI, owner: String) async throws(LoadFailure) -> Loaded {
        do throws(ResourceError) {
            guard let copy = try await cache.copy(uri, owner: owner) else { return .nothing }
            guard copy.resource.kind == .collection else {
                return Resource(copy, isFromCache: false).map(Loaded.resource) ?? .nothing
            }
            return .collection(try await cache.collection(copy, isFromCache: false, owner: owner))
        } catch {
            throw .failed(error)
        }
    }
}
