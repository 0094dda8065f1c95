public import MobileSync

/// Edits are stored first and then sent. The update policy decides about edits that are made offline.
extension ResourceClient {
    /// Creates an item in a collection by `POST`. The backend answers with `Location` and `ETag`.
    ///
    /// - Parameters:
    ///   - uri: the URI of the collection, relative to the base URL.
    ///   - body: the item; it must be JSON when the content type is. A body that is not JSON makes the resource a file,
    ///     with the library defaults of files (RES1).
    ///   - policy: overrides the configuration; saved with the resource.
    ///   - headers: further header fields, at most 4,000 bytes. They are stored with the edit and sent with each
    ///     attempt. Such an edit is never part of a batch.
    /// - Returns: the new resource, with a temporary URI until the backend has named it; nil when the backend's version
    ///   won and it has none.
    /// - Throws: `ResourceError`: `invalidArgument`, `refused`, `storeFull`, `store`, `userChanged`; also `offline`,
    ///   `noAnswer`, `signInNeeded`, `answer` and `cancelled` when the update policy does not allow queueing.
    public func create(
        in uri: String, body: [UInt8], contentType: String = "application/json", policy: SyncPolicy = SyncPolicy(),
        headers: ResourceHeaders = ResourceHeaders()
    ) async throws(ResourceError) -> Resource? {
        let owner = sharedState.owner
        let place = try await cache.locate(uri, owner: owner).local(configuration.makeID())
        return try await editor.edit(
            place, .create, body: body, contentType: contentType, request: policy, headers: headers,
            owner: owner)
    }

    /// Replaces a resource by `PUT` with `If-Match`. When the backend creates the resource at another URI (201 with
    /// `Location`), the resource moves there. The former URI stays valid while the resource is cached.
    ///
    /// - Parameters:
    ///   - uri: the URI of the resource, relative to the base URL.
    ///   - body: the whole new version, as in `create`.
    ///   - policy: overrides the policies that are saved with the resource, and is saved with it.
    ///   - headers: as in `create`.
    /// - Returns: the local version. Its flags show whether the edit waits or has a conflict. The value is nil when the
    ///   backend's version won and it has none.
    /// - Throws: as `create`.
    public func update(
        _ uri: String, body: [UInt8], contentType: String = "application/json", policy: SyncPolicy = SyncPolicy(),
        headers: ResourceHeaders = ResourceHeaders()
    ) async throws(ResourceError) -> Resource? {
        let owner = sharedState.owner
        let place = try await cache.locate(uri, owner: owner)
        return try await editor.edit(
            place, .update, body: body, contentType: contentType, request: policy, headers: headers,
            owner: owner)
    }

    /// Changes members of a JSON resource by `PATCH` with a merge patch (RFC 7396). Null removes a member.
    ///
    /// - Throws: as `create`.
    public func patch(
        _ uri: String, with changes: JSONValue, policy: SyncPolicy = SyncPolicy(),
        headers: ResourceHeaders = ResourceHeaders()
    ) async throws(ResourceError) -> Resource? {
        let owner = sharedState.owner
        let place = try await cache.locate(uri, owner: owner)
        return try await editor.edit(
            place, .patch, body: changes.json(), contentType: "application/merge-patch+json", request: policy,
            headers: headers, owner: owner)
    }

    /// Deletes a resource by `DELETE` with `If-Match`, under the policies that are saved with it. To use other
    /// policies, fetch the resource with them first, online: `fetchObject(_:policy:)`.
    ///
    /// - Throws: as `create`.
    public func delete(_ uri: String, headers: ResourceHeaders = ResourceHeaders()) async throws(ResourceError) {
        let owner = sharedState.owner
        let place = try await cache.locate(uri, owner: owner)
        _ = try await editor.edit(
            place, .delete, body: [], contentType: "application/json", request: SyncPolicy(), headers: headers,
            owner: owner)
    }
}
