import Crypto

/// How store and bus name a session where its id must not stand: SHA-256 of it.
package enum SessionDigest {
    /// Of the id's UTF-8.
    package static func of(_ sessionID: String) -> [UInt8] { Array(SHA256.hash(data: Array(sessionID.utf8))) }
}
