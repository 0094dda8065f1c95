import AsyncHTTPClient
import Credentials
import Crypto
import Foundation
import NIOCore
import NIOHTTP1

/// A backend that signs its calls with a key of its instance.
struct SignedCaller: Sendable {
    /// The API's response.
    struct Answer: Sendable {
        let status: UInt
        let body: String
        let headers: [String: String]
    }

    let apis: [Int]
    let instance: String
    let keyID: String
    let secret: [UInt8]

    /// Pushes to a user, with the id as the payload.
    ///
    /// - Parameters:
    ///   - instance: replaces the key's instance.
    ///   - nonce: replaces a new nonce.
    ///   - timestamp: replaces the current time, in milliseconds.
    func push(
        to user: String, id: String, api: Int = 0, instance: String? = nil, nonce: String? = nil,
        timestamp: Int64? = nil
    ) async throws -> Answer {
        let target = "/webapi/sync/single?instanceId=\(instance ?? self.instance)"
        let members = ["bizType": "UCHAT", "linkToken": user, "thirdMsgId": id, "payload": id]
        let body = try JSONEncoder().encode(members)
        let time = "\(timestamp ?? Int64(Date().timeIntervalSince1970 * 1_000))"
        let nonce = nonce ?? HexText.of(RandomBytes.make(16))
        let signature = RequestSignature(
            method: "POST", target: target, body: body, timestamp: time, nonce: nonce, keyID: keyID)
        return try await Self.post(
            api: apis[api], target, body,
            [
                "X-MSS-Key": keyID, "X-MSS-Timestamp": time, "X-MSS-Nonce": nonce,
                "X-MSS-Signature": HexText.of(signature.code(with: SymmetricKey(data: secret))),
            ])
    }

    /// Sends a POST with these headers.
    static func post(api: Int, _ target: String, _ body: Data, _ headers: [String: String]) async throws -> Answer {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(api)\(target)")
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        for (name, value) in headers { request.headers.add(name: name, value: value) }
        request.body = .bytes(ByteBuffer(bytes: body))
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(20))
        let text = String(buffer: try await response.body.collect(upTo: 1 << 20))
        let named = response.headers.map { ($0.name.lowercased(), $0.value) }
        return Answer(status: response.status.code, body: text, headers: Dictionary(named) { first, _ in first })
    }
}
