/// Seals bodies in the store, for apps that want it; AES-256-GCM is meant, with a key from the system's key chain.
public protocol ResourceCipher: Sendable {
    /// What goes to the disk.
    ///
    /// - Parameter place: belongs to the body and is to be authenticated with it, so that it opens at no other place.
    func seal(_ body: [UInt8], for place: String) throws -> [UInt8]

    /// The body of what `seal` made.
    ///
    /// - Throws: for anything else, and for another place.
    func open(_ sealed: [UInt8], for place: String) throws -> [UInt8]
}
