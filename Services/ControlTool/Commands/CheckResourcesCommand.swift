import ArgumentParser
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

/// `mssctl check-resources`: checks a backend for the module OfflineResources.
struct CheckResourcesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check-resources",
        abstract: "Checks whether a REST backend has the entity tags, conditions and places of offline resources.",
        discussion: """
            Without --edit and --create it only reads. --edit replaces the resource by its own present version: use one
            that no other client edits during the check. --create creates an item, twice with one Idempotency-Key, and
            deletes it. Redirects are not followed. The exit code is 1 if something is missing.
            """)

    /// The longest time of a request.
    private static let timeout = TimeAmount.seconds(30)
    /// The largest body of a response, in bytes.
    private static let maxBytes = 10_000_000

    @Argument(help: "The URL of an item, or with --create of a collection.")
    var url: String
    @Option(name: .customLong("header"), help: "A header field of each request, such as 'Authorization: Bearer …'.")
    var headers: [String] = []
    @Flag(help: "Checks the conditions of edits too.")
    var edit = false
    @Option(help: "JSON of an item to create in the collection.")
    var create: String?

    func validate() throws {
        guard ["http", "https"].contains(URL(string: url)?.scheme), URL(string: url)?.host != nil else {
            throw ValidationError("\(url) is not an http or https URL")
        }
        guard !edit || create == nil else { throw ValidationError("--edit needs an item, --create a collection") }
        if let create, (try? JSONSerialization.jsonObject(with: Data(create.utf8))) == nil {
            throw ValidationError("the item of --create is not JSON")
        }
        _ = try fields()
    }

    func run() async throws {
        let fields = try fields()
        // A redirect to another host must not get the caller's header fields.
        let client = HTTPClient(
            eventLoopGroup: HTTPClient.defaultEventLoopGroup,
            configuration: HTTPClient.Configuration(redirectConfiguration: .disallow))
        do {
            try await check(ResourceCheck { try await Self.send($0, fields, with: client) })
        } catch {
            try await client.shutdown()
            throw error
        }
        try await client.shutdown()
    }

    private func check(_ check: ResourceCheck) async throws {
        var results = try await check.read(url)
        if results[0].problem == nil {
            if edit { results += try await check.edit(url) }
            if let create { results += try await check.create(in: url, Array(create.utf8)) }
        }
        for result in results { print(TerminalText.of(result.line)) }
        if results.contains(where: { $0.problem != nil }) { throw ExitCode.failure }
    }

    private func fields() throws -> [(name: String, value: String)] {
        try headers.map { header in
            let sides = header.split(separator: ":", maxSplits: 1)
            guard sides.count == 2, !sides[0].isEmpty else {
                throw ValidationError("--header must have the form 'Name: value'")
            }
            return (String(sides[0]), sides[1].trimmingCharacters(in: .whitespaces))
        }
    }

    private static func send(
        _ request: ResourceCheck.Request, _ fields: [(name: String, value: String)], with client: HTTPClient
    ) async throws -> ResourceCheck.Response {
        var message = HTTPClientRequest(url: request.url)
        message.method = HTTPMethod(rawValue: request.method)
        message.headers.add(name: "Accept", value: "application/json")
        for (name, value) in request.headers { message.headers.add(name: name, value: value) }
        for field in fields { message.headers.replaceOrAdd(name: field.name, value: field.value) }
        if !request.body.isEmpty { message.body = .bytes(request.body) }
        let response = try await client.execute(message, timeout: timeout)
        let body = try await response.body.collect(upTo: maxBytes)
        return ResourceCheck.Response(
            status: Int(response.status.code),
            headers: Dictionary(
                response.headers.map { ($0.name.lowercased(), $0.value) }, uniquingKeysWith: { first, _ in first }),
            body: Array(body.readableBytesView))
    }
}
