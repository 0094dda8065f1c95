package import Crypto
import Foundation

/// The master keys under which tenants' secrets rest (reliability SEC16): the first one seals, all of them open.
///
/// To rotate, put a new key first and restart the processes that have the ring, seal everything anew
/// (`mssctl key reseal`), then take the old key away.
package struct KeyRing: Sendable {
    /// Why a ring's text is refused; it names lines, never what stands in them.
    package struct Fault: Error, CustomStringConvertible {
        package let description: String
    }

    private static let keyBytes = 32
    private static let idBytes = 1...16
    private static let form: UInt8 = 1

    private let keys: [(id: String, key: SymmetricKey)]

    /// A ring without keys: it seals and opens nothing.
    package static let empty = KeyRing(keys: [])

    private init(keys: [(id: String, key: SymmetricKey)]) { self.keys = keys }

    /// Whether it seals and opens nothing.
    package var isEmpty: Bool { keys.isEmpty }

    /// A ring as its file holds it: a line for each key, its id (1 to 16 of a–z, 0–9 and '-') and the Base64 text of
    /// 32 random bytes, the newest first. Empty lines and those that begin with '#' do not count.
    package init(text: String) throws(Fault) {
        var keys: [(id: String, key: SymmetricKey)] = []
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let words = line.split(whereSeparator: \.isWhitespace)
            guard let id = words.first, !id.hasPrefix("#") else { continue }
            let isID = id.utf8.allSatisfy { byte in
                (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
                    || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || byte == UInt8(ascii: "-")
            }
            guard isID, Self.idBytes.contains(id.utf8.count), words.count == 2,
                let bytes = Data(base64Encoded: String(words[1])), bytes.count == Self.keyBytes
            else {
                throw Fault(description: "line \(number + 1): expected an id and the Base64 text of 32 bytes")
            }
            guard keys.allSatisfy({ $0.id != id }) else {
                throw Fault(description: "line \(number + 1): a key of this id stands above")
            }
            keys.append((String(id), SymmetricKey(data: bytes)))
        }
        guard !keys.isEmpty else { throw Fault(description: "it holds no key") }
        self.keys = keys
    }

    /// Seals a secret for one key of one instance; it opens nowhere else. Nil for an empty ring.
    package func seal(_ secret: [UInt8], of address: KeyAddress) -> [UInt8]? {
        guard let (id, key) = keys.first,
            let box = try? AES.GCM.seal(secret, using: key, authenticating: address.bytes), let sealed = box.combined
        else { return nil }
        return [Self.form, UInt8(id.utf8.count)] + Array(id.utf8) + sealed
    }

    /// The secret; nil when it was not sealed for this address, with none of these keys, or was changed.
    package func open(_ sealed: [UInt8], of address: KeyAddress) -> SymmetricKey? {
        guard let (id, box) = Self.parts(of: sealed), let key = keys.first(where: { $0.id == id })?.key,
            let sealedBox = try? AES.GCM.SealedBox(combined: box),
            let secret = try? AES.GCM.open(sealedBox, using: key, authenticating: address.bytes)
        else { return nil }
        return SymmetricKey(data: secret)
    }

    /// Whether a secret is sealed with the newest key, so that a rotation has nothing to do.
    package func isCurrent(_ sealed: [UInt8]) -> Bool {
        keys.first.map { Self.parts(of: sealed)?.id == $0.id } ?? true
    }

    private static func parts(of sealed: [UInt8]) -> (id: String, box: ArraySlice<UInt8>)? {
        guard sealed.count > 2, sealed[0] == form, sealed.count > 2 + Int(sealed[1]) else { return nil }
        let end = 2 + Int(sealed[1])
        return (String(decoding: sealed[2..<end], as: UTF8.self), sealed[end...])
    }
}
