public import Foundation

/// Files of any size, streamed between the disk and the backend with progress (RES12). They are outside the cache:
/// `fetchFile` and `update` are for small files that must be there offline.
///
/// A call that is interrupted throws `offline`, and the same call resumes it, also after a restart of the app. A
/// cancelled task stops the transfer in the same way.
public struct FileTransfers: Sendable {
    let transport: (any FileTransport)?
    let configuration: ResourceConfiguration
    let exchange: BackendExchange
    let cache: ResourceCache
    let sharedState: ResourceSharedState

    /// Downloads a file. The part that has arrived is beside the destination, with the suffix `.part`. A download is
    /// resumed when the backend has the same version, shown by a strong entity tag, and supports `Range`; otherwise it
    /// begins again.
    ///
    /// - Parameters:
    ///   - uri: the URI relative to the base URL.
    ///   - destination: the file to write. It is replaced when the download is complete.
    ///   - headers: further header fields of the request.
    ///   - waitsForNetwork: the call waits for the network and resumes, where it otherwise throws `offline`.
    ///   - progress: called for each piece of at most 64 KiB or of the network's own size.
    /// - Returns: nil when the backend has no such file.
    /// - Throws: `ResourceError`: `invalidArgument`, `offline`, `refused`, `signInNeeded`, `answer`, `file`, `store`,
    ///   `cancelled`, `userChanged`; `alreadyRunning` when a transfer of this resource or into this file is in
    ///   progress.
    public func download(
        _ uri: String, to destination: URL, headers: ResourceHeaders = ResourceHeaders(), waitsForNetwork: Bool = false,
        progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(ResourceError) -> DownloadedFile? {
        try await transfer(uri, headers, to: destination, waits: waitsForNetwork) {
            (files, place, owner) async throws(LoadFailure) in
            try await FileDownloader(files: files, exchange: exchange, cache: cache)
                .download(place, to: destination, headers: headers, owner: owner, progress: progress)
        }
    }

    /// Uploads a file by `PUT`, with `If-Match` unless the conflict policy is CLIENT_WINS. With
    /// `ResourceConfiguration.resumableUploads`, an interrupted upload continues at the backend's offset when the file
    /// has not changed; otherwise it begins again.
    ///
    /// - Parameters:
    ///   - file: the file to read; it must stay until the call returns.
    ///   - uri: the URI relative to the base URL.
    ///   - etag: the version that the upload replaces; nil: the version in the cache, or any when there is none.
    ///   - policy: overrides the configuration; only the conflict policy counts.
    ///   - headers: further header fields of the requests.
    ///   - waitsForNetwork: the call waits for the network and resumes, where it otherwise throws `offline`.
    ///   - progress: called for each piece of at most 64 KiB that was handed to the network.
    /// - Throws: as `download`; `conflict` when the backend keeps another version. When the backend's answer to an
    ///   upload was lost, the next call can throw it because of that upload itself: compare the versions.
    public func upload(
        _ file: URL, to uri: String, contentType: String = "application/octet-stream", basedOn etag: String? = nil,
        policy: SyncPolicy = SyncPolicy(), headers: ResourceHeaders = ResourceHeaders(), waitsForNetwork: Bool = false,
        progress: @escaping @Sendable (TransferProgress) -> Void = { _ in }
    ) async throws(ResourceError) -> UploadedFile {
        guard contentType.utf8.allSatisfy({ (32..<127).contains($0) }) else {
            throw ResourceError(.invalidArgument, "the content type of \(uri) must have printable ASCII characters")
        }
        if let etag, !ETag.isWellFormed(etag) {
            throw ResourceError(.invalidArgument, "basedOn must be an entity tag with its quotes, such as \"v1\"")
        }
        return try await transfer(uri, headers, waits: waitsForNetwork) {
            (files, place, owner) async throws(LoadFailure) in
            let copy = try await cache.read("reading a copy") { try $0.resources.row(place, owner: owner) }
            let effective =
                copy?.policy.overridden(by: [policy])
                ?? configuration.policies.policy(of: place.path, kind: .file, request: policy)
            let wins = effective.conflictResolutionPolicy == .clientWins
            let request = FileUploader.Request(
                uri: place, file: file, contentType: contentType, headers: headers,
                condition: wins ? nil : etag ?? copy?.etag)
            let uploader = FileUploader(
                files: files, isResumable: configuration.resumableUploads, exchange: exchange,
                cache: cache)
            return try await uploader.upload(request, owner: owner, progress: progress)
        }
    }

    /// Executes one transfer, again and again when it waits for the network.
    private func transfer<Value: Sendable>(
        _ uri: String, _ headers: ResourceHeaders, to destination: URL? = nil, waits: Bool,
        _ body: (any FileTransport, ResourceURI, _ owner: String) async throws(LoadFailure) -> Value
    ) async throws(ResourceError) -> Value {
        try headers.check()
        let owner = sharedState.owner
        while true {
            do throws(ResourceError) {
                return try await transferOnce(uri, to: destination, of: owner, body)
            } catch {
                guard waits, error.code == .offline else { throw error }
                try sharedState.checkOwner(owner)
                await sharedState.waitUntilOnline()
                if Task.isCancelled { throw ResourceError(.cancelled, "the transfer of \(uri) was cancelled") }
            }
        }
    }

    /// Executes one transfer of a file at a time.
    private func transferOnce<Value: Sendable>(
        _ uri: String, to destination: URL?, of owner: String,
        _ body: (any FileTransport, ResourceURI, _ owner: String) async throws(LoadFailure) -> Value
    ) async throws(ResourceError) -> Value {
        guard let transport else {
            throw ResourceError(.invalidArgument, "the transport cannot transfer files; pass a fileTransport")
        }
        try sharedState.checkOwner(owner)
        let place = try await cache.locate(uri, owner: owner)
        guard !place.isLocal else {
            throw ResourceError(.invalidArgument, "\(place) is not at the backend yet; send its edit first")
        }
        guard sharedState.isOnline else { throw Self.interrupted(place) }
        var used: Set<ResourceSharedState.Transfer> = [.resource(place, owner: owner)]
        if let destination { used.insert(.destination(path: destination.standardizedFileURL.path)) }
        guard sharedState.begin(used) else {
            throw ResourceError(
                .alreadyRunning, "a transfer of \(place) or into the same file is in progress; wait for its end")
        }
        defer { sharedState.end(used) }
        let value: Value
        do throws(LoadFailure) {
            value = try await body(transport, place, owner)
        } catch {
            switch error {
            case .failed(let error): throw error
            case .unreachable: throw Self.interrupted(place)
            }
        }
        try sharedState.checkOwner(owner)
        return value
    }

    private static func interrupted(_ uri: ResourceURI) -> ResourceError {
        ResourceError(.offline, "the backend cannot be reached; the same call for \(uri) continues the transfer")
    }
}
