/// Notifies the app of changed copies and of answered edits, while their user is bound.
struct CallbackNotifier: Sendable {
    let callbacks: (any ResourceCallbacks)?
    let cache: ResourceCache
    let sharedState: ResourceSharedState

    /// Notifies the app of copies that the backend changed.
    func notifyChanged(_ uris: [ResourceURI], owner: String) async {
        guard let callbacks else { return }
        for uri in uris {
            guard sharedState.owner == owner else { return }
            let resource = try? await cache.current(uri, owner: owner)
            await callbacks.cachedResourceChanged(uri: uri.description, resource: resource)
        }
    }

    /// Notifies the app of edits that the backend has answered.
    func notifySynchronized(owner: String) async throws(ResourceError) {
        let notices = try await cache.store.read("reading notices") { try $0.notices.all(owner: owner) }
        for notice in notices {
            if let callbacks {
                let resource = try await cache.current(notice.uri, owner: owner)
                guard sharedState.owner == owner else { return }
                await callbacks.offlineResourceSynchronized(uri: notice.uri.description, resource: resource)
            }
            try await cache.store.write("deleting a notice") { try $0.notices.delete(notice.seq) }
        }
    }
}
