/// A resource as the app sees it: the service's version with the edits that were made here since.
enum LocalVersion {
    /// Nil: deleted, or never there.
    ///
    /// - Parameter edits: in the order in which they were made. Refused ones count, too: they are shown until the app
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
