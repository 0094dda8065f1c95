import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

/// The HTTP API, with which the suite pushes data for the gateway.
struct ConformanceAPI: Sendable {
    /// Address of the API, such as `http://127.0.0.1:7080`.
    let url: String
    let instance: String
    /// The Sync ID of most cases.
    let bizType: String

    private struct Item: Encodable {
        let bizType: String
        let linkToken: String
        let thirdMsgId: String
        var payload: String?
        var binaryPayload: String?
        var conversation: String?
    }

    private struct Items: Encodable { let items: [Item] }
    private struct Answers: Decodable { let results: [Answer] }

    private struct Answer: Decodable {
        let success: Bool
        let msg: String
        let oplogId: Int64?
    }

    /// Pushes texts in this order.
    ///
    /// - Parameters:
    ///   - bizType: by default the Sync ID of most cases.
    ///   - conversation: nil: none.
    /// - Returns: the oplog ids.
    /// - Throws: `Mismatch` if a push was refused.
    func push(
        _ texts: [String], to target: String, bizType: String? = nil, conversation: String? = nil
    ) async throws -> [Int64] {
        let items = texts.map {
            Item(
                bizType: bizType ?? self.bizType, linkToken: target, thirdMsgId: UUID().uuidString, payload: $0,
                conversation: conversation)
        }
        var ids: [Int64] = []
        // A batch keeps the order of its items. A hundred items keep the body small.
        for start in stride(from: 0, to: items.count, by: 100) {
            let part = Array(items[start..<min(items.count, start + 100)])
            let answers = try await call("batch", Items(items: part), as: Answers.self).results
            ids += try answers.map { try Self.id(of: $0) }
        }
        return ids
    }

    /// Pushes texts of about 4 KiB, which begin with their numbers.
    func pushFillers(_ count: Int, to target: String) async throws -> [Int64] {
        try await push((0..<count).map { "\($0) " + String(repeating: "f", count: 4_080) }, to: target)
    }

    /// Pushes one text with a `thirdMsgId` from the caller.
    func push(_ text: String, to target: String, key: String) async throws -> Int64 {
        let item = Item(bizType: bizType, linkToken: target, thirdMsgId: key, payload: text)
        return try Self.id(of: try await call("single", item, as: Answer.self))
    }

    /// Pushes bytes.
    func push(binary bytes: [UInt8], to target: String) async throws -> Int64 {
        let item = Item(
            bizType: bizType, linkToken: target, thirdMsgId: UUID().uuidString,
            binaryPayload: Data(bytes).base64EncodedString())
        return try Self.id(of: try await call("single", item, as: Answer.self))
    }

    /// Recalls the push with this `thirdMsgId`.
    func recall(key: String, of target: String) async throws {
        struct Outcome: Decodable { let success: Bool }
        let item = Item(bizType: bizType, linkToken: target, thirdMsgId: key)
        let outcome = try await call("recall", item, as: Outcome.self)
        try Mismatch.unless(outcome.success, "a recall that the HTTP API accepts", seen: "a refusal")
    }

    private static func id(of answer: Answer) throws(Mismatch) -> Int64 {
        guard answer.success, let id = answer.oplogId else {
            throw Mismatch(expected: "a push that the HTTP API accepts", seen: answer.msg)
        }
        return id
    }

    private func call<Body: Encodable, Reply: Decodable>(
        _ path: String, _ body: Body, as: Reply.Type
    ) async throws -> Reply {
        var components = URLComponents(string: "\(url)/webapi/sync/\(path)")
        components?.queryItems = [URLQueryItem(name: "instanceId", value: instance)]
        guard let address = components?.url else { throw NotSupported("--api is not a URL") }
        var request = HTTPClientRequest(url: address.absoluteString)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(ByteBuffer(bytes: try JSONEncoder().encode(body)))
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(20))
        let bytes = try await response.body.collect(upTo: 1 << 20)
        do {
            return try JSONDecoder().decode(Reply.self, from: Data(bytes.readableBytesView))
        } catch {
            throw Mismatch(
                expected: "a response of the HTTP API to \(path)",
                seen: "\(response.status.code) \(String(buffer: bytes).prefix(200))")
        }
    }
}
