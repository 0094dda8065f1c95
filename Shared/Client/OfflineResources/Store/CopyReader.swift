import Foundation

/// Reads resources with their local edits.
struct CopyReader {
    let context: StoreContext
    let resources: ResourceTable
    let members: CollectionMembers
    let edits: EditQueue

    /// A resource with its edits; nil when there is no copy. The state of a collection is `missing` when it lacks an
    /// item.
    func copy(_ uri: ResourceURI, owner: String, now: Date) throws -> LocalCopy? {
        guard let resource = try resources.row(uri, owner: owner) else { return nil }
        return try copy(resource, owner: owner, now: now)
    }

    private func copy(_ resource: StoredResource, owner: String, now: Date) throws -> LocalCopy {
        let edits = try edits.all(of: resource.uri, owner: owner)
        var state = CopyState.of(
            resource.policy, fetchedAt: resource.fetchedAt, run: resource.run, isInvalid: resource.isInvalid, now: now,
            currentRun: context.run)
        var isEmpty = false
        if resource.kind == .collection {
            let presence = try members.presence(of: resource, owner: owner)
            if !presence.isWhole { state = .missing }
            isEmpty = try presence.count == 0 && created(in: resource, owner: owner, now: now).isEmpty
        } else if resource.body == nil {
            // A locally created resource is fresh. A resource that the backend has deleted is missing.
            state = edits.isEmpty ? .missing : .fresh
        }
        return LocalCopy(resource: resource, edits: edits, state: state, isEmptyCollection: isEmpty)
    }

    /// The items of a cached collection in the backend's order, then the items that were created in it here, unless it
    /// is a page. Items that were deleted here are left out.
    func items(of collection: StoredResource, owner: String, now: Date) throws -> [LocalCopy] {
        try resources.items(of: collection.id, owner: owner).map { try copy($0, owner: owner, now: now) }
            .filter { $0.body != nil } + created(in: collection, owner: owner, now: now)
    }

    /// The items that were created here in a collection; none in a page.
    private func created(in collection: StoredResource, owner: String, now: Date) throws -> [LocalCopy] {
        guard collection.uri.query == nil else { return [] }
        return try children(of: collection.uri.path, owner: owner, now: now).filter(\.resource.uri.isLocal)
    }

    /// The cached items and files one level below a path, sorted by URI.
    func children(of path: String, owner: String, now: Date) throws -> [LocalCopy] {
        try resources.children(of: path, owner: owner).map { try copy($0, owner: owner, now: now) }
            .filter { $0.body != nil }
    }
}
