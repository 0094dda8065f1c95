/// Edits: kept in the store first, then sent; offline by the update policy.
extension ResourceClient {
    /// Creates an item in a collection: `POST`, which the service answers with `Location` and `ETag`.
    ///
    /// - Parameters:
    ///   - uri: the collection's.
    ///   - body: JSON unless the content type says otherwise.
    ///   - policy: stronger than the configuration's; saved with the resource.
    /// - Returns: the new resource; with a place of our own until the service has named one.
    /// - Throws: `ResourceError`: `invalidArgument`, `offline`, `noAnswer`, `refused`, `storeFull`, `store`,
    ///   `userChanged`.
    public func create(
        in uri: String, body: [UInt8], contentType: String = "application/json", policy: SyncPolicy = SyncPolicy()
    ) async throws(ResourceError) -> Resource? {
        let owner = board.owner
        let place = try await locate(uri, owner: owner).local(configuration.makeID())
        return try await edit(place, .create, body: body, contentType: contentType, request: policy, owner: owner)
    }

    /// Replaces a resource: `PUT` with `If-Match`. A service that did not have it, and creates it elsewhere (201 with
    /// `Location`), moves it there; the URI that was given goes on meaning it while it is cached.
    ///
    /// - Parameter policy: stronger than those saved with the resource, and saved with it in turn.
    /// - Returns: as it is now; its flags say whether the service has it, or there is a conflict. Nil: the service won,
    ///   and has none.
    /// - Throws: As `create`.
    public func update(
        _ uri: String, body: [UInt8], contentType: String = "application/json", policy: SyncPolicy = SyncPolicy()
    ) async throws(ResourceError) -> Resource? {
        let owner = board.owner
        let place = try await locate(uri, owner: owner)
        return try await edit(place, .update, body: body, contentType: contentType, request: policy, owner: owner)
    }

    /// Changes members of a JSON resource: `PATCH` with a merge patch (RFC 7396), where null removes a member.
    ///
    /// - Throws: As `create`.
    public func patch(
        _ uri: String, with changes: ResourceValue, policy: SyncPolicy = SyncPolicy()
    ) async throws(ResourceError) -> Resource? {
        let owner = board.owner
        let place = try await locate(uri, owner: owner)
        return try await edit(
            place, .patch, body: changes.json(), contentType: "application/merge-patch+json", request: policy,
            owner: owner)
    }

    /// Deletes a resource: `DELETE` with `If-Match`, by the policies that are saved with it; to have others, fetch it with
    /// them first: `fetchObject(_:policy:)`, online.
    ///
    /// - Throws: As `create`.
    public func delete(_ uri: String) async throws(ResourceError) {
        let owner = board.owner
        let place = try await locate(uri, owner: owner)
        _ = try await edit(
            place, .delete, body: [], contentType: "application/json", request: SyncPolicy(), owner: owner)
    }

    // MARK: Rules

    private func edit(
        _ uri: ResourceURI, _ kind: EditKind, body: [UInt8], contentType: String, request: SyncPolicy, owner: String
    ) async throws(ResourceError) -> Resource? {
        if let fault = request.fault { throw ResourceError(.invalidArgument, fault) }
        guard uri.query == nil, kind == .delete || !contentType.contains("json") || ResourceValue.parse(body) != nil,
            contentType.utf8.allSatisfy({ (32..<127).contains($0) })
        else {
            throw ResourceError(
                .invalidArgument, "an edit of \(uri) takes a URI without a query, and a body as its content type says")
        }
        let saved = try await copy(uri, owner: owner)?.resource.policy
        let path = kind == .create ? uri.parentPath : uri.path
        let policy =
            saved?.overridden(by: [request]) ?? configuration.policies.policy(of: path, kind: .item, request: request)
        let isOnline = isOnline
        let mayQueue = policy.updatePolicy == .queueIfOffline
        guard isOnline || mayQueue else {
            throw ResourceError(.offline, "\(uri) cannot be edited offline by its update policy; try again online")
        }
        let id = configuration.makeID()
        let edit = try await store.write("adding an edit") { transaction in
            // The service may have named its place meanwhile.
            let place = try transaction.located(uri, owner: owner)
            let draft = EditDraft(
                id: id, uri: place, kind: kind, body: body, contentType: contentType, policy: policy,
                isOffline: !isOnline)
            return try transaction.add(draft, owner: owner, mayMerge: mayQueue)
        }
        if let edit, isOnline { try await send(edit, mayQueue: mayQueue, owner: owner) }
        try checkStill(owner)
        return try await current(locate(uri.description, owner: owner), owner: owner)
    }

    /// Sends an edit whose caller waits, after those before it.
    private func send(_ edit: StoredEdit, mayQueue: Bool, owner: String) async throws(ResourceError) {
        var failure: ResourceError?
        do throws(ResourceError) {
            _ = try await sendEdits(owner: owner)
        } catch {
            failure = error
        }
        guard let left = try await store.write("looking after an edit", { try $0.edit(edit.seq) }) else { return }
        switch left.state {
        case .conflict: return
        case .refused:
            // The caller has it in hand; what was made offline before stays, for it is in it.
            if !left.isOffline {
                try await store.write("taking an edit back") { try $0.takeBack(left, owner: owner) }
            }
            throw ResourceError(
                .refused, "the service refused the edit of \(left.uri) (\(left.status ?? 0): \(left.message ?? ""))",
                status: left.status)
        case .queued, .sent:
            if mayQueue {
                try await store.write("keeping an edit") { try $0.makeOffline(left.seq) }
                return
            }
            try await store.write("taking an edit back") { try $0.takeBack(left, owner: owner) }
            throw failure
                ?? (left.state == .queued
                    ? ResourceError(.offline, "the service could not be reached; \(left.uri) is not edited")
                    : ResourceError(.noAnswer, "no answer came for the edit of \(left.uri); reload it to see"))
        }
    }
}
