/// Two edits of one resource as one, where nothing can tell the difference.
///
/// That is so only when the earlier one was never sent and nothing was edited in between: edits of other resources
/// may depend on it.
enum EditMerge: Sendable, Hashable {
    /// One edit of this kind, with this body, in the earlier one's place.
    case one(EditKind, body: [UInt8])
    /// They cancel out.
    case none
    /// They stay two.
    case two

    /// - Parameters:
    ///   - earlier: the newest edit of all, never sent, of the same resource and conflict policy.
    ///   - later: the one to be added.
    init(_ earlier: (kind: EditKind, body: [UInt8]), _ later: (kind: EditKind, body: [UInt8])) {
        switch (earlier.kind, later.kind) {
        case (.create, .update): self = .one(.create, body: later.body)
        case (.update, .update): self = .one(.update, body: later.body)
        case (.create, .delete): self = .none
        case (.update, .delete), (.patch, .delete): self = .one(.delete, body: [])
        case (.patch, .update): self = .one(.update, body: later.body)
        case (.create, .patch), (.update, .patch):
            // A patch of a patch is not always one patch, a patch of a whole is a whole.
            guard let body = Self.patched(earlier.body, with: later.body) else {
                self = .two
                return
            }
            self = .one(earlier.kind, body: body)
        case (.patch, .patch), (.delete, _), (_, .create): self = .two
        }
    }

    /// A body after a JSON merge patch; nil when one of them is no JSON.
    static func patched(_ body: [UInt8], with patch: [UInt8]) -> [UInt8]? {
        guard let value = ResourceValue.parse(body), let change = ResourceValue.parse(patch) else { return nil }
        return try? value.merged(with: change).json()
    }
}
