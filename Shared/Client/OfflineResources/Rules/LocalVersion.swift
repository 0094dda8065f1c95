/// The version of a resource that the app sees: the backend's version with the local edits.
enum LocalVersion {
    /// The version; nil when it is deleted or never existed.
    ///
    /// - Parameter edits: in the order in which they were made, including refused ones: they stay visible until the app
    ///   discards them.
    static func of(_ service: [UInt8]?, edits: [(kind: EditKind, body: [UInt8])]) -> [UInt8]? {
        edits.reduce(service) { version, edit in
            switch edit.kind {
            case .create, .update: edit.body
            case .patch: version.flatMap { EditMerge.patched($0, with: edit.body) } ?? version
            case .delete: nil
            }
        }
    }
}
