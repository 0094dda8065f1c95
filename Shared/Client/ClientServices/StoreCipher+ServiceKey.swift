import MobileSync

extension StoreCipher {
    /// The cipher of a `ServiceStore`.
    ///
    /// - Throws: `ClientServiceError.invalidArgument` for a key of another length.
    init(serviceKey key: [UInt8]) throws(ClientServiceError) {
        guard let cipher = StoreCipher(key: key, checkText: "client services key") else {
            throw ClientServiceError(.invalidArgument, "a key must have \(Self.keyBytes) bytes, not \(key.count)")
        }
        self = cipher
    }
}
