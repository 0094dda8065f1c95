import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

/// Sends requests to a backend over HTTP.
///
/// Follows at most five redirects, and only on the same host, port and scheme. It returns other redirects as responses,
/// so that credentials and bodies go to no other server.
public final class HTTPResourceTransport: ResourceTransport {
    private static let mostRedirects = 5

    private let base: BackendURL
    private let timeout: Duration
    private let mostBytes: Int
    private let credentials: @Sendable (_ userID: String?) async throws -> [(name: String, value: String)]
    private let client: HTTPClient

    /// Makes a transport.
    ///
    /// - Parameters:
    ///   - baseURL: the base of all resource URIs, such as `https://backend.example/api`.
    ///   - timeout: the longest time of a request, from its start to the last byte of the response; 30 s by default.
    ///   - mostBytes: the largest body of a response in bytes; 10 MB by default. The body is kept in memory.
    ///   - credentials: returns header fields for a user. Called for every request. When it throws, the request fails
    ///     with `signInNeeded`.
    /// - Throws: `ResourceError.invalidArgument`.
    public init(
        baseURL: String, timeout: Duration = .seconds(30), mostBytes: Int = 10_000_000,
        credentials: @escaping @Sendable (_ userID: String?) async throws -> [(name: String, value: String)] = { _ in
            []
        }
    ) throws(ResourceError) {
        base = try BackendURL(baseURL)
        guard timeout > .zero, mostBytes > 0 else {
            throw ResourceError(.invalidArgument, "timeout and mostBytes must be above 0")
        }
        self.timeout = timeout
        self.mostBytes = mostBytes
        self.credentials = credentials
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.timeout.connect = .seconds(10)
        // An offline device must fail at once.
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroup: HTTPClient.defaultEventLoopGroup, configuration: configuration)
    }

    deinit {
        // Closes idle connections. No caller is left to receive an error.
        client.shutdown { _ in }
    }

    public func relative(_ reference: String) -> String? { base.relative(reference) }

    public func send(_ request: ResourceRequest) async throws(TransportError) -> ResourceResponse {
        let added: [(name: String, value: String)]
        do {
            added = try await credentials(request.userID)
        } catch is CancellationError {
            throw .cancelled
        } catch {
            throw .noCredentials("\(error)")
        }
        var target = base.path + request.uri
        let deadline = NIODeadline.now() + TimeAmount(timeout)
        for _ in 0...Self.mostRedirects {
            var message = HTTPClientRequest(url: base.origin + target)
            message.method = HTTPMethod(rawValue: request.method)
            for field in request.headers.fields { message.headers.add(name: field.name, value: field.value) }
            for field in added { message.headers.replaceOrAdd(name: field.name, value: field.value) }
            if !request.body.isEmpty { message.body = .bytes(request.body) }
            let response = try await exchange(message, by: deadline)
            guard let next = redirect(response, of: request.method) else { return response }
            target = next
        }
        throw .unusable("more than \(Self.mostRedirects) redirects for \(request.uri)")
    }

    private func exchange(
        _ message: HTTPClientRequest, by deadline: NIODeadline
    ) async throws(TransportError) -> ResourceResponse {
        let answer: HTTPClientResponse
        do {
            answer = try await client.execute(message, deadline: deadline)
        } catch {
            throw Self.failure(error)
        }
        var headers = ResourceHeaders()
        for field in answer.headers { headers.add(field.name, field.value) }
        do {
            let body = try await answer.body.collect(upTo: mostBytes)
            return ResourceResponse(
                status: Int(answer.status.code), headers: headers, body: Array(body.readableBytesView))
        } catch is NIOTooManyBytesError {
            throw .unusable("the response has more than \(mostBytes) bytes")
        } catch {
            throw Self.failure(error)
        }
    }

    /// The target of a redirect on the same host, as far as the method allows it (RFC 9110 §15.4).
    private func redirect(_ response: ResourceResponse, of method: String) -> String? {
        let statuses = method == "GET" ? [301, 302, 303, 307, 308] : [307, 308]
        guard statuses.contains(response.status) else { return nil }
        return response.headers["Location"].flatMap(base.local)
    }

    private static func failure(_ error: any Error) -> TransportError {
        if error is CancellationError || (error as? HTTPClientError) == .cancelled { return .cancelled }
        // The type belongs to a module that is not imported here. For unknown errors `noAnswer` is the safe choice.
        if String(describing: type(of: error)) == "NIOConnectionError" { return .notSent("\(error)") }
        if let error = error as? IOError, [ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, ENETDOWN].contains(error.errnoCode)
        {
            return .notSent("\(error)")
        }
        let unsent: [HTTPClientError] = [
            .connectTimeout, .getConnectionFromPoolTimeout, .tlsHandshakeTimeout, .alreadyShutdown,
        ]
        if let error = error as? HTTPClientError, unsent.contains(error) { return .notSent("\(error)") }
        return .noAnswer("\(error)")
    }
}
