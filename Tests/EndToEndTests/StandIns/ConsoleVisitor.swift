import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import TestSupport

/// A signed-in user of the console's API, as a program uses it.
struct ConsoleVisitor: Sendable {
    private let address: String
    private let token: String

    /// The console's response.
    struct Answer {
        let status: UInt
        let headers: HTTPHeaders
        let body: [UInt8]

        /// The members of the JSON body.
        var members: [String: Any] {
            (try? JSONSerialization.jsonObject(with: Data(body))) as? [String: Any] ?? [:]
        }
    }

    /// Creates an administrator's account with an invitation of the tool, and signs in.
    init(_ stack: Stack, name: String) async throws {
        address = "http://127.0.0.1:\(stack.consolePort)"
        let invitation = try await stack.tool(["console", "invite", "--console", address])
        guard let mark = invitation.output.split(separator: "#").last else { throw Failure(invitation.output) }
        let secret = mark.trimmingCharacters(in: .whitespacesAndNewlines)
        let password = "a long pass phrase of \(name)"
        let used = try await Self.send(
            .POST, address + "/api/v1/invitations", ["token": secret, "name": name, "password": password], nil)
        guard used.status == 200 else { throw Failure("the invitation: \(used.members)") }
        let session = try await Self.send(
            .POST, address + "/api/v1/session", ["name": name, "password": password], nil)
        token = try requireValue(session.members["token"] as? String, "a session: \(session.members)")
    }

    /// Makes one call.
    ///
    /// - Parameter path: behind `/api/v1`.
    func call(_ method: HTTPMethod, _ path: String, _ body: [String: Any]? = nil) async throws -> Answer {
        try await Self.send(method, "\(address)/api/v1\(path)", body, token)
    }

    private static func send(
        _ method: HTTPMethod, _ url: String, _ body: [String: Any]?, _ token: String?
    ) async throws -> Answer {
        var request = HTTPClientRequest(url: url)
        request.method = method
        if let token { request.headers.add(name: "Authorization", value: "Bearer \(token)") }
        if let body {
            request.headers.add(name: "Content-Type", value: "application/json")
            request.body = .bytes(ByteBuffer(bytes: try JSONSerialization.data(withJSONObject: body)))
        }
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(20))
        let bytes = try await response.body.collect(upTo: 32 << 20)
        return Answer(status: response.status.code, headers: response.headers, body: Array(bytes.readableBytesView))
    }
}
