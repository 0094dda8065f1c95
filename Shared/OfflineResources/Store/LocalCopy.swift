/// A resource with the edits that were made here since.
struct LocalCopy: Sendable, Hashable {
    let resource: StoredResource
    let edits: [StoredEdit]
    /// Of the resource, a collection with its items.
    let state: CopyState

    /// As the app sees it; nil: deleted.
    var body: [UInt8]? { LocalVersion.of(resource.body, edits: edits.map { ($0.kind, $0.body) }) }

    /// There is a version of the service's, or something that was made here.
    var isThere: Bool { resource.kind == .collection || resource.body != nil || !edits.isEmpty }
}
