import ArgumentParser
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

/// `mssctl push`: one push through the HTTP API, as a backend would send it.
struct PushCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "push", abstract: "Pushes one payload to a user or device through the HTTP API.")

    @Option(help: "The API's address.")
    var api = "http://127.0.0.1:7080"
    @Option(help: "The instance.")
    var instance: String
    @Option(help: "The Sync ID.")
    var bizType: String
    @Option(help: "The user id or device id; none for a global push.")
    var to: String?
    @Option(help: "The unique data id; made up when absent.")
    var id: String?
    @Argument(help: "The payload.")
    var payload: String

    func run() async throws {
        let scope = to == nil ? "global" : "single"
        var members = ["bizType": bizType, "payload": payload, "thirdMsgId": id ?? UUID().uuidString]
        members["linkToken"] = to
        var components = URLComponents(string: "\(api)/webapi/sync/\(scope)")
        components?.queryItems = [URLQueryItem(name: "instanceId", value: instance)]
        guard let url = components?.url else { throw ValidationError("--api is not a URL") }
        var request = HTTPClientRequest(url: url.absoluteString)
        request.method = .POST
        request.headers.add(name: "Content-Type", value: "application/json")
        request.body = .bytes(ByteBuffer(bytes: try JSONEncoder().encode(members)))
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(10))
        let answer = try await response.body.collect(upTo: 65_536)
        print(String(buffer: answer))
        if response.status != .ok { throw ExitCode.failure }
    }
}
