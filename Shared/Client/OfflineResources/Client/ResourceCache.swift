import Foundation

/// The local copies in the store, as the app sees them.
struct ResourceCache: Sendable {
    let store: ResourceStore
    let clock: @Sendable () -> Date

    // MARK: Reading

    /// A resource with its edits; nil when there is no copy.
    func copy(_ uri: ResourceURI, owner: String) async throws(ResourceError) -> LocalCopy? {
        let now = clock()
        return try await store.read("reading a copy") { try $0.copies.copy(uri, owner: owner, now: now) }
    }

    /// The current URI of a resource that the caller names.
    func locate(_ uri: String, owner: String) async throws(ResourceError) -> ResourceURI {
        let parsed = try ResourceURI(uri)
        return try await store.read("finding a resource") { try $0.aliases.located(parsed, owner: owner) }
    }

    /// The local version; nil when it is deleted.
    func current(_ uri: ResourceURI, owner: String) async throws(ResourceError) -> Resource? {
        try await copy(uri, owner: owner).flatMap { Resource($0, isFromCache: true) }
    }

    /// A cached collection with its items.
    func collection(
        _ copy: LocalCopy, isFromCache: Bool, owner: String
    ) async throws(ResourceError) -> ResourceCollection {
        let now = clock()
        return try await store.read("reading a collection") { transaction in
            try Self.collection(copy, isFromCache: isFromCache, owner: owner, now: now, in: transaction)
        }
    }

    /// The local copies that a query of a collection finds; nil when neither the collection nor an item of it is
    /// cached.
    func collection(
        _ uri: ResourceURI, _ query: LocalQuery, owner: String
    ) async throws(ResourceError) -> ResourceCollection? {
        let now = clock()
        return try await store.read("querying copies") { transaction in
            try Self.collection(uri, query, owner: owner, now: now, in: transaction)
        }
    }

    /// As `collection`, within a transaction.
    static func collection(
        _ copy: LocalCopy, isFromCache: Bool, owner: String, now: Date, in transaction: StoreTransaction
    ) throws -> ResourceCollection {
        ResourceCollection(
            uri: copy.resource.uri.description,
            items: try transaction.copies.items(of: copy.resource, owner: owner, now: now).compactMap {
                Resource($0, isFromCache: isFromCache)
            },
            etag: copy.resource.etag, isFromCache: isFromCache, isExpired: copy.state == .expired)
    }

    /// As `collection`, within a transaction.
    static func collection(
        _ uri: ResourceURI, _ query: LocalQuery, owner: String, now: Date, in transaction: StoreTransaction
    ) throws -> ResourceCollection? {
        let place = try transaction.aliases.located(uri, owner: owner)
        let copy = try transaction.copies.copy(place, owner: owner, now: now)
        let collection = copy.flatMap { $0.resource.kind == .collection ? $0 : nil }
        let items = try transaction.copies.children(of: place.path, owner: owner, now: now)
        guard collection != nil || !items.isEmpty else { return nil }
        return ResourceCollection(
            uri: place.description, items: query.result(of: items.compactMap { Resource($0, isFromCache: true) }),
            etag: collection?.resource.etag, isFromCache: true, isExpired: collection?.state == .expired)
    }

    // MARK: For loads

    /// Reads the store for a load.
    ///
    /// - Throws: `LoadFailure.failed` with the store's error.
    func read<Value: Sendable>(
        _ doing: String, _ body: @escaping @Sendable (StoreTransaction) throws -> Value
    ) async throws(LoadFailure) -> Value {
        do throws(ResourceError) {
            return try await store.read(doing, body)
        } catch {
            throw .failed(error)
        }
    }

    /// Executes one transaction of the store for a load.
    ///
    /// - Throws: `LoadFailure.failed` with the store's error.
    func stored<Value: Sendable>(
        _ doing: String, _ body: @Sendable (StoreTransaction) throws -> Value
    ) async throws(LoadFailure) -> Value {
        do throws(ResourceError) {
            return try await store.write(doing, body)
        } catch {
            throw .failed(error)
        }
    }
}
