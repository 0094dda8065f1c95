import ArgumentParser
import AsyncHTTPClient
import Credentials
import Foundation
import NIOCore
import NIOHTTP1
import ServiceKit
import SyncModel

/// The HTTP API as the tool calls it: as any backend would.
struct APIClient: ParsableArguments {
    @Option(help: "The API's address; http://127.0.0.1:7080 when absent.")
    var api: String?
    @OptionGroup var signing: SigningArguments

    private var address: String { api ?? "http://127.0.0.1:7080" }

    /// Whether a person's command that the oplog writers can do goes to them: a broker is set, and no API is named.
    /// Then it is recorded who gave it (spec C9); otherwise the tool is a backend as any other.
    var goesToWriters: Bool {
        get throws { try api == nil && ToolSettings.nameBroker() }
    }

    /// Attempts of one call, in all.
    private static let attempts = 3
    /// The longest pause before a repeat. A caller that must wait longer gets the answer, which says so.
    private static let longestPause = 5

    /// Makes a call, and repeats it while its answer says that a repeat can help (`retryable`).
    ///
    /// - Parameters:
    ///   - path: below `/webapi/`.
    ///   - body: sent by POST as JSON; nil: GET.
    /// - Returns: the JSON text of the last answer, also of a failure.
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

    /// One attempt, signed anew where calls are signed; the answer, and the seconds after which a repeat makes sense.
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
            throw ValidationError("the API at \(address) cannot be reached (\(error)); is it running?")
        }
        let pause = response.headers.first(name: "Retry-After").flatMap { Int($0) } ?? 1
        return (Data(try await response.body.collect(upTo: 1 << 20).readableBytesView), pause)
    }

    /// The members of an answer that every call has.
    struct Answer: Decodable {
        let success: Bool
        let retryable: Bool
    }

    /// Prints an answer as it came; a failure ends the tool with 1.
    static func show(_ answer: Data) throws {
        print(String(decoding: answer, as: UTF8.self))
        guard (try? JSONDecoder().decode(Answer.self, from: answer))?.success == true else { throw ExitCode.failure }
    }
}
