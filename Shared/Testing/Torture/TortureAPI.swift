import AsyncHTTPClient
import DeliveryHistory
import Foundation
import NIOCore
import NIOHTTP1
import SyncModel

/// Calls of a backend in a torture run, to any ingest process.
struct TortureAPI: Sendable {
    /// The response for one push, or to a call.
    struct Answer: Decodable, Sendable {
        let success: Bool
        let msg: String
        let retryable: Bool
        let oplogId: Int64?
    }

    private static let timeout = TimeAmount.seconds(10)

    let client: HTTPClient
    let ports: [Int]

    /// Sends a call.
    ///
    /// - Parameters:
    /// - api: index of the ingest process, modulo their number.
    /// - path: path below `/webapi/`.
    /// - Returns: status and body. The value is nil if no complete response came.
    func post(_ body: Data, to path: String, of instance: String, api: Int) async -> (status: UInt, body: Data)? {
        let port = ports[api % ports.count]
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)/webapi/\(path)?instanceId=\(instance)")
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(ByteBuffer(bytes: body))
        guard let response = try? await client.execute(request, timeout: Self.timeout),
            let bytes = try? await response.body.collect(upTo: 1 << 20)
        else { return nil }
        return (response.status.code, Data(bytes.readableBytesView))
    }

    /// Recalls a push.
    func recall(_ push: String, to target: HistoryTarget, api: Int) async -> Answer? {
        var members = ["bizType": target.bizType, "thirdMsgId": push]
        members["linkToken"] = target.kind.isGlobal ? nil : Self.linkToken(target)
        return await answer(members, to: "sync/recall", of: target.instance, api: api)
    }

    /// Revokes a user session.
    func revoke(_ session: String, of user: String, in instance: String, api: Int) async -> Answer? {
        await answer(["userId": user, "sessionId": session], to: "session/revoke", of: instance, api: api)
    }

    private func answer(_ members: [String: String], to path: String, of instance: String, api: Int) async -> Answer? {
        guard let body = try? JSONEncoder().encode(members),
            let answer = await post(body, to: path, of: instance, api: api)
        else { return nil }
        return try? JSONDecoder().decode(Answer.self, from: answer.body)
    }

    /// The user, or the device id without the prefix of the instance.
    static func linkToken(_ target: HistoryTarget) -> String {
        target.kind == .device ? String(target.target.dropFirst(target.instance.utf8.count + 1)) : target.target
    }
}
