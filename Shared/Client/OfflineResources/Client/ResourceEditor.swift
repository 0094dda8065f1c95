import MobileSync

/// Executes edits under the update policy.
struct ResourceEditor: Sendable {
    let configuration: ResourceConfiguration
    let sender: EditSender
    let cache: ResourceCache
    let sharedState: ResourceSharedState

    /// Stores an edit, and sends it when there is a connection.
    ///
    /// - Throws: as `ResourceClient.create`.
    func edit(
        _ uri: ResourceURI, _ kind: EditKind, body: [UInt8], contentType: String, request: SyncPolicy,
        headers: ResourceHeaders, owner: String
    ) async throws(ResourceError) -> Resource? {
        if let fault = request.fault { throw ResourceError(.invalidArgument, fault) }
        try headers.check()
        guard uri.query == nil, kind == .delete || !contentType.contains("json") || JSONValue.parse(body) != nil,
            contentType.utf8.allSatisfy({ (32..<127).contains($0) })
        else {
            throw ResourceError(
                .invalidArgument,
                "an edit of \(uri) needs a URI without a query, and a body that matches its content type")
        }
        let saved = try await cache.copy(uri, owner: owner)?.resource.policy
        let path = kind == .create ? uri.parentPath : uri.path
        let policy =
            saved?.overridden(by: [request])
            ?? configuration.policies.policy(
                of: path, kind: ResourceKind(contentType: contentType), request: request)
        let isOnline = sharedState.isOnline
        let mayQueue = policy.updatePolicy == .queueIfOffline
        guard isOnline || mayQueue else {
            throw ResourceError(.offline, "the update policy of \(uri) does not allow offline edits; try again online")
        }
        let id = configuration.makeID()
        let edit = try await cache.store.write("adding an edit") { transaction in
            // The backend may have named the resource meanwhile.
            let place = try transaction.aliases.located(uri, owner: owner)
            let draft = EditDraft(
                id: id, uri: place, kind: kind, body: body, contentType: contentType, headers: headers,
                policy: policy, isOffline: !isOnline)
            return try transaction.edits.add(draft, owner: owner, mayMerge: mayQueue)
        }
        if let edit, isOnline { try await send(edit, mayQueue: mayQueue, owner: owner) }
        try sharedState.checkOwner(owner)
        return try await cache.current(cache.locate(uri.description, owner: owner), owner: owner)
    }

    /// Sends an edit whose caller waits, after the edits before it.
    private func send(_ edit: StoredEdit, mayQueue: Bool, owner: String) async throws(ResourceError) {
        var failure: ResourceError?
        do throws(ResourceError) {
            _ = try await sender.sendAll(owner: owner)
        } catch {
            failure = error
        }
        guard let left = try await cache.store.read("reading an edit", { try $0.edits.edit(edit.seq) }) else { return }
        switch left.state {
        case .conflict: return
        case .refused:
            // The caller gets the error and still has the edit. An edit that was made offline before stays stored,
            // because it is merged into this one.
            if !left.isOffline {
                try await cache.store.write("withdrawing an edit") { try $0.responses.withdraw(left, owner: owner) }
            }
            throw ResourceError(
                .refused, "the backend refused the edit of \(left.uri) (\(left.status ?? 0): \(left.message ?? ""))",
                status: left.status)
        case .queued, .sent:
            if mayQueue {
                try await cache.store.write("queueing an edit") { try $0.edits.makeOffline(left.seq) }
                return
            }
            try await cache.store.write("withdrawing an edit") { try $0.responses.withdraw(left, owner: owner) }
            throw failure
                ?? (left.state == .queued
                    ? ResourceError(.offline, "the backend could not be reached; \(left.uri) is not edited")
                    : ResourceError(
                        .noAnswer,
                        "no response arrived for the edit of \(left.uri); reload the resource to see its state"))
        }
    }
}
