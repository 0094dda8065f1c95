#if canImport(Darwin)
    // Not compiled here: this file needs Apple's Foundation, and the project is built on Linux.

    public import Foundation

    /// Sends requests and files to a backend through `URLSession`, with the system's proxies, certificates and
    /// connectivity. It follows redirects as `HTTPResourceTransport` does.
    public final class URLSessionTransport: ResourceTransport, FileTransport {
        private let base: BackendURL
        private let mostBytes: Int
        private let credentials: @Sendable (_ userID: String?) async throws -> [(name: String, value: String)]
        private let session: URLSession

        /// Makes a transport.
        ///
        /// - Parameters:
        ///   - baseURL: the base of all resource URIs, such as `https://backend.example/api`.
        ///   - configuration: of the session; its `timeoutIntervalForRequest` is the longest time without a byte.
        ///   - mostBytes: the largest body of a response in bytes; 10 MB by default. Files have no limit.
        ///   - credentials: returns header fields for a user. Called for every request. When it throws, the request
        ///     fails with `signInNeeded`.
        /// - Throws: `ResourceError.invalidArgument`.
        public init(
            baseURL: String, configuration: URLSessionConfiguration = .ephemeral, mostBytes: Int = 10_000_000,
            credentials: @escaping @Sendable (_ userID: String?) async throws -> [(name: String, value: String)] = {
                _ in []
            }
        ) throws(ResourceError) {
            base = try BackendURL(baseURL)
            guard mostBytes > 0 else { throw ResourceError(.invalidArgument, "mostBytes must be above 0") }
            self.mostBytes = mostBytes
            self.credentials = credentials
            // The library has its own cache.
            configuration.urlCache = nil
            configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
            session = URLSession(configuration: configuration)
        }

        deinit { session.finishTasksAndInvalidate() }

        public func relative(_ reference: String) -> String? { base.relative(reference) }

        public func send(_ request: ResourceRequest) async throws(TransportError) -> ResourceResponse {
            var message = try await message(for: request)
            if !request.body.isEmpty { message.httpBody = Data(request.body) }
            return try await Self.failing {
                let (data, response) = try await session.data(for: message, delegate: TaskGuard(base: base))
                return try complete(data, response)
            }
        }

        public func download(_ request: ResourceRequest) async throws(TransportError) -> FileDownload {
            let message = try await message(for: request)
            return try await Self.failing {
                let (bytes, response) = try await session.bytes(for: message, delegate: TaskGuard(base: base))
                return FileDownload(response: try Self.head(response), pieces: BytePieces(bytes: bytes))
            }
        }

        public func upload(
            _ request: ResourceRequest, from file: URL, offset: Int64, length: Int64,
            progress: @escaping @Sendable (Int64) -> Void
        ) async throws(TransportError) -> ResourceResponse {
            let message = try await message(for: request)
            return try await Self.failing {
                let rest = try await Self.rest(of: file, from: offset, length: length)
                defer { if rest != file { try? FileManager.default.removeItem(at: rest) } }
                let (data, response) = try await session.upload(
                    for: message, fromFile: rest, delegate: TaskGuard(base: base, progress: progress))
                return try complete(data, response)
            }
        }

        /// The file itself from its start, otherwise a copy of its rest: `URLSession` uploads whole files only.
        private static func rest(of file: URL, from offset: Int64, length: Int64) async throws -> URL {
            guard offset > 0 else { return file }
            let copy = FileManager.default.temporaryDirectory.appending(path: "upload-\(UUID().uuidString)")
            let (source, target) = (try FilePieces(reading: file), try FilePieces(writing: copy))
            var copied: Int64 = 0
            while copied < length {
                let piece = try await source.read(at: offset + copied, limit: length - copied)
                guard !piece.isEmpty else { throw TransportError.unusable("the file became shorter") }
                try await target.append(piece)
                copied += Int64(piece.count)
            }
            return copy
        }

        private func message(for request: ResourceRequest) async throws(TransportError) -> URLRequest {
            guard let url = URL(string: base.origin + base.path + request.uri) else {
                throw .unusable("\(request.uri) is not a valid URL")
            }
            var message = URLRequest(url: url)
            message.httpMethod = request.method
            for field in request.headers.fields { message.addValue(field.value, forHTTPHeaderField: field.name) }
            do {
                for field in try await credentials(request.userID) {
                    message.setValue(field.value, forHTTPHeaderField: field.name)
                }
            } catch is CancellationError {
                throw .cancelled
            } catch {
                throw .noCredentials("\(error)")
            }
            return message
        }

        private func complete(_ data: Data, _ response: URLResponse) throws -> ResourceResponse {
            guard data.count <= mostBytes else {
                throw TransportError.unusable("the response has more than \(mostBytes) bytes")
            }
            var head = try Self.head(response)
            head.body = [UInt8](data)
            return head
        }

        private static func head(_ response: URLResponse) throws -> ResourceResponse {
            guard let response = response as? HTTPURLResponse else {
                throw TransportError.unusable("the response is not HTTP")
            }
            var headers = ResourceHeaders()
            for (name, value) in response.allHeaderFields { headers.add("\(name)", "\(value)") }
            return ResourceResponse(status: response.statusCode, headers: headers)
        }

        private static func failing<Value>(
            _ body: () async throws -> Value
        ) async throws(TransportError) -> Value {
            do {
                return try await body()
            } catch {
                throw failure(error)
            }
        }

        fileprivate static func failure(_ error: any Error) -> TransportError {
            if let error = error as? TransportError { return error }
            if error is CancellationError { return .cancelled }
            guard let error = error as? URLError else { return .noAnswer("\(error)") }
            let unsent: [URLError.Code] = [
                .notConnectedToInternet, .cannotFindHost, .cannotConnectToHost, .dnsLookupFailed,
                .secureConnectionFailed, .serverCertificateUntrusted, .internationalRoamingOff, .dataNotAllowed,
            ]
            if error.code == .cancelled { return .cancelled }
            return unsent.contains(error.code) ? .notSent("\(error)") : .noAnswer("\(error)")
        }
    }

    /// Follows redirects only on the backend's own host, and reports the progress of an upload.
    private final class TaskGuard: NSObject, URLSessionTaskDelegate, Sendable {
        private let base: BackendURL
        private let progress: (@Sendable (Int64) -> Void)?

        init(base: BackendURL, progress: (@Sendable (Int64) -> Void)? = nil) {
            self.base = base
            self.progress = progress
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
            newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
        ) {
            let method = task.originalRequest?.httpMethod ?? "GET"
            let isAllowed = method == "GET" || [307, 308].contains(response.statusCode)
            let isHere = request.url.map { base.local($0.absoluteString) != nil } ?? false
            completionHandler(isAllowed && isHere ? request : nil)
        }

        func urlSession(
            _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
            totalBytesExpectedToSend: Int64
        ) { progress?(totalBytesSent) }
    }

    /// Bytes in pieces of 64 KiB.
    private struct BytePieces: AsyncSequence, Sendable {
        let bytes: URLSession.AsyncBytes

        func makeAsyncIterator() -> AsyncIterator { AsyncIterator(base: bytes.makeAsyncIterator()) }

        struct AsyncIterator: AsyncIteratorProtocol {
            var base: URLSession.AsyncBytes.AsyncIterator

            mutating func next() async throws -> [UInt8]? {
                var piece: [UInt8] = []
                do {
                    while piece.count < FilePieces.size, let byte = try await base.next() { piece.append(byte) }
                } catch {
                    throw URLSessionTransport.failure(error)
                }
                return piece.isEmpty ? nil : piece
            }
        }
    }
#endif
