import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1

/// Reaches a backend over HTTP.
///
/// Redirects are followed on the same host, port and scheme only, at most five; others come back as answers, so that
/// credentials and bodies go nowhere else.
public final class HTTPResourceTransport: ResourceTransport {
    private static let mostRedirects = 5

    private let base: BackendURL
    private let timeout: Duration
    private let mostBytes: Int
    private let credentials: @Sendable (_ userID: String?) async throws -> [(name: String, value: String)]
    private let client: HTTPClient

    /// - Parameters:
    ///   - baseURL: such as `https://backend.example/api`; what follows it are the resources' URIs.
    ///   - timeout: of a request, from its start to its answer's last byte; 30 s by default.
    ///   - mostBytes: of an answer's body; 10 MB by default. It is held in memory as a whole.
    ///   - credentials: header fields for a user, asked for with every request; what it throws ends the request, as one
    ///     for which somebody has to sign in.
    /// - Throws: `ResourceError.invalidArgument`.
    public init(
        baseURL: String, timeout: Duration = .seconds(30), mostBytes: Int = 10_000_000,
        credentials: @escaping @Sendable (_ userID: String?) async throws -> [(name: String, value: String)] = { _ in
            []
        }
    ) throws(ResourceError) {
        base = try BackendURL(baseURL)
        guard timeout > .zero, mostBytes > 0 else {
            throw ResourceError(.invalidArgument, "timeout and mostBytes take more than 0")
        }
        self.timeout = timeout
        self.mostBytes = mostBytes
        self.credentials = credentials
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.timeout.connect = .seconds(10)
        // A device that is offline is to know it at once.
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroup: HTTPClient.defaultEventLoopGroup, configuration: configuration)
    }

    deinit {
        // Ends idle connections; nobody is left who could hear of a failure.
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
        throw .unusable("over \(Self.mostRedirects) redirects for \(request.uri)")
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
            throw .unusable("the answer has over \(mostBytes) bytes")
        } catch {
            throw Self.failure(error)
        }
    }

    /// Where to go on, on the same host: as the method allows (RFC 9110 §15.4).
    private func redirect(_ response: ResourceResponse, of method: String) -> String? {
        let statuses = method == "GET" ? [301, 302, 303, 307, 308] : [307, 308]
        guard statuses.contains(response.status) else { return nil }
        return response.headers["Location"].flatMap(base.local)
    }

    private static func failure(_ error: any Error) -> TransportError {
        if error is CancellationError || (error as? HTTPClientError) == .cancelled { return .cancelled }
        // Of a module that this one does not import; of an error that is not known, `noAnswer` is the careful word.
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
