import AsyncHTTPClient
public import Foundation
import NIOCore
import NIOHTTP1

/// Sends requests and files to a backend over HTTP.
///
/// Follows at most five redirects, and only on the same host, port and scheme. It returns other redirects as responses,
/// so that credentials and bodies go to no other server.
public final class HTTPResourceTransport: ResourceTransport, FileTransport {
    private static let mostRedirects = 5
    /// Transfers of files at the same time; more fail after the time limit of a connection.
    private static let mostTransfers = 100

    private let base: BackendURL
    private let timeout: Duration
    private let mostBytes: Int
    private let credentials: @Sendable (_ userID: String?) async throws -> [(name: String, value: String)]
    private let client: HTTPClient
    /// Has connections of its own, so that long transfers do not keep requests waiting.
    private let fileClient: HTTPClient

    /// Makes a transport.
    ///
    /// - Parameters:
    ///   - baseURL: the base of all resource URIs, such as `https://backend.example/api`.
    ///   - timeout: the longest time of a request, from its start to the last byte of the response; 30 s by default.
    ///     For the transfer of a file: the longest time without a byte.
    ///   - mostBytes: the largest body of a response in bytes; 10 MB by default. The body is kept in memory. Files have
    ///     no limit, because they are never in memory as a whole.
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
        configuration.timeout.read = TimeAmount(timeout)
        configuration.timeout.write = TimeAmount(timeout)
        // An offline device must fail at once.
        configuration.connectionPool.retryConnectionEstablishment = false
        client = HTTPClient(eventLoopGroup: HTTPClient.defaultEventLoopGroup, configuration: configuration)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = Self.mostTransfers
        fileClient = HTTPClient(eventLoopGroup: HTTPClient.defaultEventLoopGroup, configuration: configuration)
    }

    deinit {
        // Closes idle connections. No caller is left to receive an error.
        client.shutdown { _ in }
        fileClient.shutdown { _ in }
    }

    public func relative(_ reference: String) -> String? { base.relative(reference) }

    public func send(_ request: ResourceRequest) async throws(TransportError) -> ResourceResponse {
        let body = request.body
        let answer = try await exchange(request, with: client, by: NIODeadline.now() + TimeAmount(timeout)) {
            body.isEmpty ? nil : .bytes(body)
        }
        return try await complete(answer)
    }

    // MARK: Files

    public func download(_ request: ResourceRequest) async throws(TransportError) -> FileDownload {
        let answer = try await exchange(request, with: fileClient, by: .distantFuture) { nil }
        return FileDownload(response: Self.head(answer), pieces: ResponsePieces(body: answer.body))
    }

    public func upload(
        _ request: ResourceRequest, from file: URL, offset: Int64, length: Int64,
        progress: @escaping @Sendable (Int64) -> Void
    ) async throws(TransportError) -> ResourceResponse {
        let answer = try await exchange(request, with: fileClient, by: .distantFuture) {
            .stream(
                FileBody(file: file, offset: offset, length: length, progress: progress), length: .known(length))
        }
        return try await complete(answer)
    }

    // MARK: Exchange

    /// Sends a request, and again to each redirect that counts.
    ///
    /// - Parameter body: makes the body of each attempt.
    private func exchange(
        _ request: ResourceRequest, with client: HTTPClient, by deadline: NIODeadline,
        body: () -> HTTPClientRequest.Body?
    ) async throws(TransportError) -> HTTPClientResponse {
        let added: [(name: String, value: String)]
        do {
            added = try await credentials(request.userID)
        } catch is CancellationError {
            throw .cancelled
        } catch {
            throw .noCredentials("\(error)")
        }
        var target = base.path + request.uri
        for _ in 0...Self.mostRedirects {
            var message = HTTPClientRequest(url: base.origin + target)
            message.method = HTTPMethod(rawValue: request.method)
            for field in request.headers.fields { message.headers.add(name: field.name, value: field.value) }
            for field in added { message.headers.replaceOrAdd(name: field.name, value: field.value) }
            message.body = body()
            let answer: HTTPClientResponse
            do {
                answer = try await client.execute(message, deadline: deadline)
            } catch {
                throw Self.failure(error)
            }
            guard let next = redirect(Self.head(answer), of: request.method) else { return answer }
            target = next
        }
        throw .unusable("more than \(Self.mostRedirects) redirects for \(request.uri)")
    }

    private static func head(_ answer: HTTPClientResponse) -> ResourceResponse {
        var headers = ResourceHeaders()
        for field in answer.headers { headers.add(field.name, field.value) }
        return ResourceResponse(status: Int(answer.status.code), headers: headers)
    }

    /// The response with its body.
    private func complete(_ answer: HTTPClientResponse) async throws(TransportError) -> ResourceResponse {
        do {
            var response = Self.head(answer)
            response.body = Array(try await answer.body.collect(upTo: mostBytes).readableBytesView)
            return response
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

    fileprivate static func failure(_ error: any Error) -> TransportError {
        if let error = error as? TransportError { return error }
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

/// The pieces of a response's body.
private struct ResponsePieces: AsyncSequence, Sendable {
    let body: HTTPClientResponse.Body

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: body.makeAsyncIterator()) }

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: HTTPClientResponse.Body.AsyncIterator

        @concurrent mutating func next() async throws -> [UInt8]? {
            do {
                return try await base.next().map { Array($0.readableBytesView) }
            } catch {
                throw HTTPResourceTransport.failure(error)
            }
        }
    }
}

/// A part of a file as the body of a request.
private struct FileBody: AsyncSequence, Sendable {
    let file: URL
    let offset: Int64
    let length: Int64
    let progress: @Sendable (Int64) -> Void

    func makeAsyncIterator() -> AsyncIterator { AsyncIterator(body: self) }

    struct AsyncIterator: AsyncIteratorProtocol {
        let body: FileBody
        private var pieces: FilePieces?
        private var sent: Int64 = 0

        init(body: FileBody) { self.body = body }

        mutating func next() async throws -> ByteBuffer? {
            guard sent < body.length else { return nil }
            let pieces = try self.pieces ?? FilePieces(reading: body.file)
            self.pieces = pieces
            let piece = try await pieces.read(at: body.offset + sent, limit: body.length - sent)
            guard !piece.isEmpty else { throw TransportError.unusable("the file became shorter during the upload") }
            sent += Int64(piece.count)
            body.progress(sent)
            return ByteBuffer(bytes: piece)
        }
    }
}
