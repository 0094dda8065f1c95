import MobileSync

extension StoreCipher {
    /// The cipher of an entity store.
    ///
    /// - Throws: `EntityError.invalidArgument` for a key of another length.
    init(entityKey key: [UInt8]) throws(EntityError) {
        guard let cipher = StoreCipher(key: key, checkText: "local entities key") else {
            throw EntityError(.invalidArgument, "an encryption key must have \(Self.keyBytes) bytes, not \(key.count)")
        }
        self = cipher
    }
}
