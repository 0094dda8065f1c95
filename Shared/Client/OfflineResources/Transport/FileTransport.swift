public import Foundation

/// Sends requests whose bodies are files, piece by piece, so that no whole file is in memory. `HTTPResourceTransport`
/// is the usual implementation; `URLSessionTransport` is the one for Apple's systems.
public protocol FileTransport: Sendable {
    /// Sends a request, and returns when the head of its response has arrived.
    ///
    /// - Throws: `TransportError`; also while the pieces of the body are read.
    func download(_ request: ResourceRequest) async throws(TransportError) -> FileDownload

    /// Sends a request with a part of a file as its body, and waits for the complete response.
    ///
    /// - Parameters:
    ///   - offset: the start of the part in the file, in bytes.
    ///   - length: the number of bytes to send.
    ///   - progress: called with the number of bytes that were sent so far.
    /// - Throws: `TransportError.noAnswer` also when the file cannot be read.
    func upload(
        _ request: ResourceRequest, from file: URL, offset: Int64, length: Int64,
        progress: @escaping @Sendable (Int64) -> Void
    ) async throws(TransportError) -> ResourceResponse
}
