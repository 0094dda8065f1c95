import ArgumentParser
import AsyncHTTPClient
import Credentials
import Foundation
import NIOCore
import NIOHTTP1
import ServiceKit
import SyncModel
import ToolSupport

/// The HTTP API as the tool calls it, like any backend.
struct APIClient: ParsableArguments {
    @Option(help: "Address of the API; http://127.0.0.1:7080 when absent.")
    var api: String?
    @OptionGroup var signing: SigningArguments

    private var address: String { api ?? "http://127.0.0.1:7080" }

    /// Whether an operator's command goes to the oplog writers: a broker is configured, and no API is named. Then the
    /// writers write an audit record (C9). Otherwise the tool is an ordinary backend.
    var goesToWriters: Bool {
        get throws { try api == nil && ToolSettings.nameBroker() }
    }

    /// Most attempts of one call.
    private static let attempts = 3
    /// Longest pause before a repeat, in seconds. If the API requests a longer pause, the caller receives the response.
    private static let longestPause = 5

    /// Makes a call, and repeats it while the response is `retryable`.
    ///
    /// - Parameters:
    /// - path: path below `/webapi/`.
    /// - body: JSON for a POST call. The value is nil for a GET call.
    /// - Returns: the JSON text of the last response, also of a failure.
    func call(_ path: String, _ query: [(String, String?)], body: [String: String]? = nil) async throws -> Data {
        for _ in 1..<Self.attempts {
            let (answer, pause) = try await attempt(path, query, body)
            let isRetryable = (try? JSONDecoder().decode(Answer.self, from: answer))?.retryable == true
            guard isRetryable, pause <= Self.longestPause else { return answer }
            FileHandle.standardError.write(Data("repeating after: \(String(decoding: answer, as: UTF8.self))\n".utf8))
            try await Task.sleep(for: .seconds(pause))
        }
        return try await attempt(path, query, body).answer
    }

    /// One attempt, with a new signature if calls are signed. Returns the response and the pause before a repeat, in
    /// seconds.
    private func attempt(
        _ path: String, _ query: [(String, String?)], _ body: [String: String]?
    ) async throws -> (answer: Data, pause: Int) {
        guard var components = URLComponents(string: "\(address)/webapi/\(path)") else {
            throw ValidationError("--api is not a URL")
        }
        components.queryItems = query.compactMap { name, value in value.map { URLQueryItem(name: name, value: $0) } }
        guard let url = components.url else { throw ValidationError("--api is not a URL") }
        var request = HTTPClientRequest(url: url.absoluteString)
        var content = Data()
        if let body {
            request.method = .POST
            request.headers.add(name: "Content-Type", value: "application/json")
            content = try JSONEncoder().encode(body)
            request.body = .bytes(ByteBuffer(bytes: content))
        }
        if let signer = try signing.signer() {
            let target = components.percentEncodedPath + (components.percentEncodedQuery.map { "?" + $0 } ?? "")
            let headers = signer.headers(method: request.method.rawValue, target: target, body: content, at: .now)
            request.headers.add(contentsOf: HTTPHeaders(headers))
        }
        let response: HTTPClientResponse
        do {
            response = try await HTTPClient.shared.execute(request, timeout: .seconds(10))
        } catch {
            throw ValidationError("cannot reach the API at \(address) (\(error)): check that it is running")
        }
        let pause = response.headers.first(name: "Retry-After").flatMap { Int($0) } ?? 1
        return (Data(try await response.body.collect(upTo: 1 << 20).readableBytesView), pause)
    }

    /// The members that every response has.
    struct Answer: Decodable {
        let success: Bool
        let retryable: Bool
    }

    /// Prints a response unchanged. Throws an exit code of 1 for a failure.
    static func show(_ answer: Data) throws {
        print(String(decoding: answer, as: UTF8.self))
        guard (try? JSONDecoder().decode(Answer.self, from: answer))?.success == true else { throw ExitCode.failure }
    }
}
