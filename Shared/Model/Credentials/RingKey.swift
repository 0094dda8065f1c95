import Crypto
import Foundation
import SyncModel

/// A key of a ring, with the id that sealed secrets contain.
struct RingKey: Sendable {
    /// Bytes of a key.
    static let bytes = 32
    private static let idBytes = 1...16

    let id: String
    let key: SymmetricKey

    /// Reads the keys of a ring: one line for each, with its id (1 to 16 of a–z, 0–9 and '-'), the purpose if the ring
    /// has one, and the Base64 text of 32 bytes, the newest first. Empty lines and lines that begin with '#' are
    /// ignored.
    ///
    /// - Parameter purpose: nil for master keys, whose lines contain no purpose.
    static func read(_ text: String, for purpose: AppKey.Purpose?) throws(KeyRing.Fault) -> [RingKey] {
        var keys: [RingKey] = []
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let words = line.split(whereSeparator: \.isWhitespace).map(String.init)
            guard let id = words.first, !id.hasPrefix("#") else { continue }
            let named = purpose.map { [$0.word] } ?? []
            guard isID(id), words.count == 2 + named.count, Array(words.dropFirst().dropLast()) == named,
                let bytes = Data(base64Encoded: words[words.count - 1]), bytes.count == Self.bytes
            else {
                let form = (["an id"] + named.map { "\"\($0)\"" }).joined(separator: ", ")
                throw KeyRing.Fault(description: "line \(number + 1): expected \(form) and the Base64 text of 32 bytes")
            }
            guard keys.allSatisfy({ $0.id != id }) else {
                throw KeyRing.Fault(description: "line \(number + 1): the id of this key is already used above")
            }
            keys.append(RingKey(id: id, key: SymmetricKey(data: bytes)))
        }
        guard !keys.isEmpty else { throw KeyRing.Fault(description: "it holds no key") }
        return keys
    }

    /// The line of a ring for one purpose.
    func line(for purpose: AppKey.Purpose) -> String {
        "\(id) \(purpose.word) \(key.withUnsafeBytes { Data($0) }.base64EncodedString())"
    }

    private static func isID(_ text: String) -> Bool {
        idBytes.contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "-")
            }
    }
}
