import Credentials
import Crypto
import Foundation

/// What shows that a session is somebody's: 256 random bits, which the database knows only by their digest.
struct SessionToken: Hashable, Sendable {
    private let bytes: [UInt8]

    /// A new one.
    init() { bytes = RandomBytes.make(32) }

    /// As a cookie or header spells it; nil: it cannot be one.
    init?(text: some StringProtocol) {
        guard let bytes = HexText.bytes(of: text), bytes.count == 32 else { return nil }
        self.bytes = bytes
    }

    /// For cookie and header.
    var text: String { HexText.of(bytes) }

    /// For the database.
    var digest: [UInt8] { Array(SHA256.hash(data: bytes)) }

    /// What a page of this session puts into the header of a change: another site's page does not know it
    /// (reliability SEC13).
    var formToken: String {
        HexText.of(HMAC<SHA256>.authenticationCode(for: Array("form".utf8), using: SymmetricKey(data: bytes)))
    }
}
