import Credentials
import Crypto
import Foundation
import SyncModel

/// A backend that signs its calls, and the instance of its key.
struct IngestSigner: Sendable {
    private static let masters: KeyRing = {
        // The text is a valid key ring, so parsing cannot fail.
        (try? KeyRing(text: "test-1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")) ?? .empty
    }()
    /// The sealing keys that an ingest has.
    static let ring = masters.sealing(for: .backend)

    var instanceID = "w_app"
    var keyID = "k1"
    var secret = RandomBytes.make(32)
    var method = "POST"
    var target = IngestSmugglingCase.target
    var body = IngestSmugglingCase.json
    /// The signed values, which can differ from the sent values.
    var timestamp = "1700000000000"
    var nonce = HexText.of(RandomBytes.make(16))

    /// The key as control data has it.
    func key(purpose: AppKey.Purpose = .backend, limits: KeyLimits = KeyLimits()) -> AppKey {
        let address = KeyAddress(instanceID: InstanceID(instanceID), keyID: keyID, purpose: purpose)
        return AppKey(
            id: keyID, purpose: purpose, sealedSecret: Self.masters.seal(secret, of: address) ?? [], limits: limits,
            createdAt: WallTime(milliseconds: 0))
    }

    /// A directory with the instance and this key.
    func directory(requiresSignature: Bool = true, limits: KeyLimits = KeyLimits()) -> StubDirectory {
        var directory = StubDirectory()
        directory.add(
            Instance(
                id: InstanceID(instanceID), name: "", isEnabled: true, validatorURL: "", verdictLifetime: .zero,
                requiresSignature: requiresSignature, keys: [key(limits: limits)]))
        return directory
    }

    var signature: String {
        HexText.of(
            RequestSignature(
                method: method, target: target, body: Array(body.utf8), timestamp: timestamp, nonce: nonce,
                keyID: keyID
            ).code(with: SymmetricKey(data: secret)))
    }

    /// The four headers, one for each line.
    var headers: String {
        "X-MSS-Key: \(keyID)\r\nX-MSS-Timestamp: \(timestamp)\r\nX-MSS-Nonce: \(nonce)\r\n"
            + "X-MSS-Signature: \(signature)\r\n"
    }

    /// The bytes of the request.
    ///
    /// - Parameter headers: replaces the correct headers.
    func request(headers: String? = nil) -> String {
        let content =
            method == "POST"
            ? "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n" : ""
        return
            "\(method) \(target) HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\(content)\(headers ?? self.headers)\r\n"
            + (method == "POST" ? body : "")
    }
}
