import MobileSync

/// Merges two edits of one resource into one, where the backend cannot see a difference.
///
/// This requires that the earlier edit was never sent and that nothing was edited in between, because edits of other
/// resources can depend on the earlier edit.
enum EditMerge: Sendable, Hashable {
    /// One edit of this kind and body replaces the earlier edit.
    case one(EditKind, body: [UInt8])
    /// The edits cancel each other.
    case none
    /// Both edits stay.
    case two

    /// - Parameters:
    ///   - earlier: the newest edit of the user; never sent, and of the same resource and conflict policy.
    ///   - later: the edit to add.
    init(_ earlier: (kind: EditKind, body: [UInt8]), _ later: (kind: EditKind, body: [UInt8])) {
        switch (earlier.kind, later.kind) {
        case (.create, .update): self = .one(.create, body: later.body)
        case (.update, .update): self = .one(.update, body: later.body)
        case (.create, .delete): self = .none
        case (.update, .delete), (.patch, .delete): self = .one(.delete, body: [])
        case (.patch, .update): self = .one(.update, body: later.body)
        case (.create, .patch), (.update, .patch):
            // Two patches cannot always be one patch. A patch of a whole body is a whole body.
            guard let body = Self.patched(earlier.body, with: later.body) else {
                self = .two
                return
            }
            self = .one(earlier.kind, body: body)
        case (.patch, .patch), (.delete, _), (_, .create): self = .two
        }
    }

    /// Applies a JSON merge patch to a body; nil when one of them is not JSON.
    static func patched(_ body: [UInt8], with patch: [UInt8]) -> [UInt8]? {
        guard let value = JSONValue.parse(body), let change = JSONValue.parse(patch) else { return nil }
        return try? value.merged(with: change).json()
    }
}
