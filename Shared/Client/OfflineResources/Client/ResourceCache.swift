import Foundation

/// The local copies in the store, as the app sees them.
struct ResourceCache: Sendable {
    let store: ResourceStore
    let clock: @Sendable () -> Date

    /// A resource with its edits; nil when there is no copy.
    func copy(_ uri: ResourceURI, owner: String) async throws(ResourceError) -> LocalCopy? {
        let now = clock()
        return try await store.write("reading a copy") { try $0.copies.copy(uri, owner: owner, now: now) }
    }

    /// The current URI of a resource that the caller names.
    func locate(_ uri: String, owner: String) async throws(ResourceError) -> ResourceURI {
        let parsed = try ResourceURI(uri)
        return try await store.write("finding a resource") { try $0.aliases.located(parsed, owner: owner) }
    }

    /// The local version; nil when it is deleted.
    func current(_ uri: ResourceURI, owner: String) async throws(ResourceError) -> Resource? {
        try await copy(uri, owner: owner).flatMap { Resource($0, isFromCache: true) }
    }

    /// A cached collection with its items.
    func collection(
        _ row: StoredResource, state: CopyState, isFromCache: Bool, owner: String
    ) async throws(ResourceError) -> ResourceCollection {
        let now = clock()
        let items = try await store.write("reading a collection") { transaction in
            try transaction.copies.items(of: row, owner: owner, now: now)
        }
        return ResourceCollection(
            uri: row.uri.description, items: items.compactMap { Resource($0, isFromCache: isFromCache) },
            etag: row.etag, isFromCache: isFromCache, isExpired: state == .expired)
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
