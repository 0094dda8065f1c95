/// A resource with its local edits.
struct LocalCopy: Sendable, Hashable {
    let resource: StoredResource
    let edits: [StoredEdit]
    /// The cache state; for a collection it includes the items.
    let state: CopyState
    /// Whether this is a collection without items, also without items that were created here.
    let isEmptyCollection: Bool

    /// The version that the app sees; nil when it is deleted.
    var body: [UInt8]? { LocalVersion.of(resource.body, edits: edits.map { ($0.kind, $0.body) }) }

    /// Whether there is a version of the backend or a local edit.
    var isThere: Bool { resource.kind == .collection || resource.body != nil || !edits.isEmpty }
}
