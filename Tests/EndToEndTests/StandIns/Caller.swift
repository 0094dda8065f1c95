import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

/// A backend that pushes like the guide's sample, and repeats a call with an unknown outcome.
struct Caller: Sendable {
    /// The API's response.
    struct Answer: Decodable, Sendable {
        let success: Bool
        let msg: String
        /// Required: a response without it cannot be decoded.
        let retryable: Bool
        let oplogId: Int64?
        let detail: String?
    }

    let apis: [Int]
    var instance = Stack.instance

    /// Makes one call. Returns nil without a readable response.
    ///
    /// - Parameters:
    ///   - target: a user or device; nil calls the global push.
    ///   - more: further members, as text.
    ///   - query: follows `instanceId`.
    func call(
        _ bizType: String, to target: String?, id: String, payload: String, more: [String: String] = [:], api: Int = 0,
        query: String = ""
    ) async -> Answer? {
        let scope = target == nil ? "global" : "single"
        let url = "http://127.0.0.1:\(apis[api % apis.count])/webapi/sync/\(scope)?instanceId=\(instance)\(query)"
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.headers.add(name: "Content-Encoding", value: "UTF-8")
        var members = ["bizType": bizType, "thirdMsgId": id, "payload": payload].merging(more) { $1 }
        if let target { members["linkToken"] = target }
        guard let body = try? JSONEncoder().encode(members) else { return nil }
        request.body = .bytes(ByteBuffer(bytes: body))
        guard
            let response = try? await HTTPClient.shared.execute(request, timeout: .seconds(10)),
            let bytes = try? await response.body.collect(upTo: 65_536)
        else { return nil }
        return try? JSONDecoder().decode(Answer.self, from: Data(bytes.readableBytesView))
    }

    /// Revokes one session of a user, or all of them. Returns nil without a readable response.
    func revoke(_ user: String?, session: String? = nil) async -> Answer? {
        var request = HTTPClientRequest(
            url: "http://127.0.0.1:\(apis[0])/webapi/session/revoke?instanceId=\(instance)")
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        var members: [String: String] = [:]
        members["userId"] = user
        members["sessionId"] = session
        guard let body = try? JSONEncoder().encode(members) else { return nil }
        request.body = .bytes(ByteBuffer(bytes: body))
        guard
            let response = try? await HTTPClient.shared.execute(request, timeout: .seconds(10)),
            let bytes = try? await response.body.collect(upTo: 65_536)
        else { return nil }
        return try? JSONDecoder().decode(Answer.self, from: Data(bytes.readableBytesView))
    }

    /// Makes one batch call of (Sync ID, target, id), each with its id as the payload. Returns the items' answers.
    func batch(_ items: [(bizType: String, target: String, id: String)], api: Int = 0) async throws -> [Answer] {
        struct Batch: Decodable { let results: [Answer] }
        let url = "http://127.0.0.1:\(apis[api % apis.count])/webapi/sync/batch?instanceId=\(instance)"
        var request = HTTPClientRequest(url: url)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        let members = items.map {
            ["bizType": $0.bizType, "linkToken": $0.target, "thirdMsgId": $0.id, "payload": $0.id]
        }
        request.body = .bytes(ByteBuffer(bytes: try JSONEncoder().encode(["items": members])))
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(20))
        let bytes = try await response.body.collect(upTo: 1 << 20)
        return try JSONDecoder().decode(Batch.self, from: Data(bytes.readableBytesView)).results
    }

    /// Repeats the call with the same thirdMsgId until the push is stored (H5), on the next API each time.
    ///
    /// - Parameter target: a user or device; nil calls the global push.
    func push(
        _ bizType: String, to target: String?, id: String, payload: String, more: [String: String] = [:], first: Int = 0
    ) async throws -> Answer {
        let deadline = ContinuousClock.now + .seconds(240)
        var attempt = first
        var last: Answer?
        while ContinuousClock.now < deadline {
            last = await call(bizType, to: target, id: id, payload: payload, more: more, api: attempt)
            if let last, last.success { return last }
            attempt += 1
            try await pause()
        }
        throw CallerFailure(id: id, attempts: attempt - first, last: last)
    }

    /// Waits like a backend before it repeats a call.
    private func pause() async throws {
        try await ContinuousClock().sleep(for: .milliseconds(Int.random(in: 50...200)))
    }
}

/// A push that did not succeed in time.
struct CallerFailure: Error {
    let id: String
    let attempts: Int
    /// The last response; nil if it did not come or could not be decoded.
    let last: Caller.Answer?
}
