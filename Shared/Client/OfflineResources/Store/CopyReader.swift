import Foundation

/// Reads resources with their local edits.
struct CopyReader {
    let context: StoreContext
    let resources: ResourceTable
    let members: CollectionMembers
    let edits: EditQueue

    /// A resource with its edits; nil when there is no copy. The state of a collection is `missing` when it is empty or
    /// lacks an item.
    func copy(_ uri: ResourceURI, owner: String, now: Date) throws -> LocalCopy? {
        guard let resource = try resources.row(uri, owner: owner) else { return nil }
        return try copy(resource, owner: owner, now: now)
    }

    private func copy(_ resource: StoredResource, owner: String, now: Date) throws -> LocalCopy {
        let edits = try edits.all(of: resource.uri, owner: owner)
        var state = CopyState.of(
            resource.policy, fetchedAt: resource.fetchedAt, run: resource.run, isInvalid: resource.isInvalid, now: now,
            currentRun: context.run)
        if resource.kind == .collection {
            if try !members.isWhole(resource, owner: owner) { state = .missing }
        } else if resource.body == nil {
            // A locally created resource is fresh. A resource that the backend has deleted is missing.
            state = edits.isEmpty ? .missing : .fresh
        }
        return LocalCopy(resource: resource, edits: edits, state: state)
    }

    /// The items of a cached collection in the backend's order, then the items that were created in it here, unless it
    /// is a page. Items that were deleted here are left out.
    func items(of collection: StoredResource, owner: String, now: Date) throws -> [LocalCopy] {
        var items = try resources.items(of: collection.id, owner: owner).map { try copy($0, owner: owner, now: now) }
        if collection.uri.query == nil {
            items += try children(of: collection.uri.path, owner: owner, now: now).filter(\.resource.uri.isLocal)
        }
        return items.filter { $0.body != nil }
    }

    /// The cached items one level below a path, sorted by URI.
    func children(of path: String, owner: String, now: Date) throws -> [LocalCopy] {
        try resources.children(of: path, owner: owner).map { try copy($0, owner: owner, now: now) }
            .filter { $0.body != nil }
    }
}
