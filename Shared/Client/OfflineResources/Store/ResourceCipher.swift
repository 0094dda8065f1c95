/// Encrypts bodies in the store. The app implements it, for example with AES-256-GCM and a key from the system's key
/// chain.
public protocol ResourceCipher: Sendable {
    /// Encrypts and authenticates a body.
    ///
    /// - Parameter place: the context of the body. The implementation must authenticate it with the body, so that the
    ///   body can only be opened for the same place.
    func seal(_ body: [UInt8], for place: String) throws -> [UInt8]

    /// Decrypts a result of `seal`.
    ///
    /// - Throws: any error when the data or the place is another one.
    func open(_ sealed: [UInt8], for place: String) throws -> [UInt8]
}
