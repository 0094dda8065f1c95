import Foundation
import Synchronization

@testable import OfflineResources

/// The real transport on a network that tests interrupt.
final class TestTransport: ResourceTransport, FileTransport {
    enum Network: Sendable {
        case works
        /// No request leaves the device.
        case isCut
        /// Requests arrive, responses do not.
        case losesAnswers
    }

    private let inner: HTTPResourceTransport
    private let state = Mutex((network: Network.works, hook: nil as (@Sendable (ResourceRequest) async -> Void)?))
    private let cut = Mutex<Int64?>(nil)
    private let pieceHook = Mutex<(@Sendable () async -> Void)?>(nil)

    init(url: String) throws {
        inner = try HTTPResourceTransport(baseURL: url, timeout: .seconds(20)) { userID in
            userID.map { [("Authorization", "Bearer \($0)")] } ?? []
        }
    }

    var network: Network {
        get { state.withLock { $0.network } }
        set { state.withLock { $0.network = newValue } }
    }

    /// The number of bytes of a file that pass before the connection breaks; nil: all.
    var cutAfter: Int64? {
        get { cut.withLock { $0 } }
        set { cut.withLock { $0 = newValue } }
    }

    /// Runs this after a response has arrived, before it is passed on.
    func beforeAnswer(_ hook: (@Sendable (ResourceRequest) async -> Void)?) { state.withLock { $0.hook = hook } }

    /// Runs this after each piece of a file has arrived, before it is passed on.
    func beforePiece(_ hook: (@Sendable () async -> Void)?) { pieceHook.withLock { $0 = hook } }

    func relative(_ reference: String) -> String? { inner.relative(reference) }

    func send(_ request: ResourceRequest) async throws(TransportError) -> ResourceResponse {
        if network == .isCut { throw .notSent("cut") }
        let response = try await inner.send(request)
        if let hook = state.withLock({ $0.hook }) { await hook(request) }
        if network == .losesAnswers { throw .noAnswer("lost") }
        return response
    }

    func download(_ request: ResourceRequest) async throws(TransportError) -> FileDownload {
        if network == .isCut { throw .notSent("cut") }
        let download = try await inner.download(request)
        let pieces = TestPieces(body: download.body, limit: cutAfter ?? .max, hook: pieceHook.withLock { $0 })
        return FileDownload(response: download.response, pieces: pieces)
    }

    func upload(
        _ request: ResourceRequest, from file: URL, offset: Int64, length: Int64,
        progress: @escaping @Sendable (Int64) -> Void
    ) async throws(TransportError) -> ResourceResponse {
        if network == .isCut { throw .notSent("cut") }
        guard let cutAfter else {
            let response = try await inner.upload(
                request, from: file, offset: offset, length: length, progress: progress)
            if network == .losesAnswers { throw .noAnswer("lost") }
            return response
        }
        // As a backend sees a broken connection: a part has arrived, and it is not the last one.
        var part = request
        part.headers = ResourceHeaders()
        for field in request.headers.fields {
            part.headers.add(field.name, field.name == "Upload-Complete" ? "?0" : field.value)
        }
        _ = try await inner.upload(part, from: file, offset: offset, length: cutAfter, progress: progress)
        throw .noAnswer("cut")
    }
}

/// A body that breaks after a number of bytes, with a hook for each piece.
private struct TestPieces: AsyncSequence, Sendable {
    let body: FileDownload.Body
    let limit: Int64
    let hook: (@Sendable () async -> Void)?

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: body.makeAsyncIterator(), rest: limit, hook: hook)
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        let base: FileDownload.Body.AsyncIterator
        var rest: Int64
        let hook: (@Sendable () async -> Void)?

        mutating func next() async throws -> [UInt8]? {
            guard rest > 0 else { throw TransportError.noAnswer("cut") }
            guard let piece = try await base.next() else { return nil }
            await hook?()
            let passed = piece.prefix(Int(Swift.min(rest, Int64(piece.count))))
            rest -= Int64(passed.count)
            return Array(passed)
        }
    }
}
