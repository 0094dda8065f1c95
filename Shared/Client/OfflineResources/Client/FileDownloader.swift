import Foundation

/// Downloads files, and resumes them with `Range` and `If-Range` (RFC 9110 §14).
struct FileDownloader: Sendable {
    /// After this number of bytes the part is flushed and its size is stored, so that a crash loses no more.
    private static let stride: Int64 = 4_194_304

    let files: any FileTransport
    let exchange: BackendExchange
    let cache: ResourceCache

    private enum Outcome {
        case done(DownloadedFile)
        /// The backend has no such resource.
        case missing
        /// The stored part does not belong to the backend's version.
        case restart
    }

    /// - Returns: nil when the backend has no such resource.
    func download(
        _ uri: ResourceURI, to destination: URL, headers: ResourceHeaders, owner: String,
        progress: @Sendable (TransferProgress) -> Void
    ) async throws(LoadFailure) -> DownloadedFile? {
        var isFolder: ObjCBool = false
        guard !FileManager.default.fileExists(atPath: destination.path, isDirectory: &isFolder) || !isFolder.boolValue
        else {
            throw .failed(ResourceError(.invalidArgument, "\(destination.path) is a folder; pass the path of a file"))
        }
        let part = destination.appendingPathExtension("part")
        var saved = try await cache.read("reading a transfer") { try $0.transfers.download(uri, owner: owner) }
        // The part can be gone, or be that of another destination.
        if let found = saved, found.part != part.path || (try? FileFingerprint(at: part))?.size ?? 0 < found.offset {
            saved = nil
        }
        while true {
            let outcome = try await attempt(
                uri, to: part, resuming: saved, headers: headers, owner: owner, progress: progress)
            switch outcome {
            case .restart:
                guard saved != nil else {
                    throw .failed(
                        ResourceError(
                            .answer,
                            "the backend answered a request for the whole of \(uri) with a part; it must answer 200"))
                }
                saved = nil
            case .missing:
                try? FileManager.default.removeItem(at: part)
                return nil
            case .done(let file):
                try finish(part, at: destination)
                try await remove(uri, owner: owner)
                return DownloadedFile(
                    uri: file.uri, file: destination, size: file.size, etag: file.etag, contentType: file.contentType)
            }
        }
    }

    private func attempt(
        _ uri: ResourceURI, to part: URL, resuming saved: FileTransferTable.Download?, headers: ResourceHeaders,
        owner: String, progress: @Sendable (TransferProgress) -> Void
    ) async throws(LoadFailure) -> Outcome {
        var fields = ResourceHeaders()
        fields.add("Accept", "*/*")
        fields.merge(headers)
        // Sizes and offsets are those of the file itself.
        fields.add("Accept-Encoding", "identity")
        if let saved {
            fields.add("Range", "bytes=\(saved.offset)-")
            fields.add("If-Range", saved.etag)
        }
        let request = ResourceRequest(method: "GET", uri: uri.description, headers: fields)
        let download: FileDownload
        do {
            download = try await files.download(exchange.authorized(request, owner: owner))
        } catch {
            throw exchange.failure(error, of: request.uri)
        }
        let response = download.response
        try await exchange.record(response)
        let (start, total): (Int64, Int64?)
        switch response.status {
        case 206:
            guard let saved, let range = response.headers["Content-Range"].flatMap(ContentRange.init),
                range.start == saved.offset, exchange.tag(response) == saved.etag
            else { return .restart }
            (start, total) = (saved.offset, range.total ?? saved.total)
        case 200...299: (start, total) = (0, response.headers["Content-Length"].flatMap { Int64($0) })
        case 416: return .restart
        case 404, 410:
            try await remove(uri, owner: owner)
            return .missing
        default: throw .failed(exchange.refusal(response, of: uri))
        }
        let size = try await receive(
            download, to: part, from: start, total: total, of: uri, owner: owner, progress: progress)
        return .done(
            DownloadedFile(
                uri: uri.description, file: part, size: size, etag: exchange.tag(response),
                contentType: response.headers["Content-Type"]))
    }

    /// Writes the pieces of a body. What has arrived stays for the next attempt when the version has a strong tag.
    ///
    /// - Returns: the size of the whole file.
    private func receive(
        _ download: FileDownload, to part: URL, from start: Int64, total: Int64?, of uri: ResourceURI, owner: String,
        progress: @Sendable (TransferProgress) -> Void
    ) async throws(LoadFailure) -> Int64 {
        let tag = exchange.tag(download.response).flatMap { ETag.isStrong($0) ? $0 : nil }
        var (offset, stored) = (start, start)
        func keep(_ pieces: FilePieces) async throws {
            try await pieces.flush()
            stored = offset
            guard let tag else { return }
            let state = FileTransferTable.Download(etag: tag, part: part.path, total: total, offset: offset)
            try await cache.store.write("storing a transfer") { try $0.transfers.store(state, of: uri, owner: owner) }
        }
        do {
            let pieces = try FilePieces(writing: part)
            // First the former states, which the cut part does not fulfil any more.
            if start == 0 {
                try await cache.stored("beginning a transfer") { transaction in
                    try transaction.transfers.remove(.download, uri, owner: owner)
                    try transaction.transfers.removeDownloads(into: part.path)
                }
            }
            try await pieces.cut(at: start)
            progress(TransferProgress(transferred: offset, total: total))
            do {
                for try await piece in download.body {
                    try await pieces.append(piece)
                    offset += Int64(piece.count)
                    progress(TransferProgress(transferred: offset, total: total))
                    if offset - stored >= Self.stride { try await keep(pieces) }
                }
                try Task.checkCancellation()
                if let total, offset != total {
                    throw TransportError.noAnswer("\(offset) of \(total) bytes have arrived")
                }
                try await pieces.flush()
            } catch {
                if offset > 0 { try? await keep(pieces) }
                throw error
            }
        } catch let error as TransportError {
            throw exchange.failure(error, of: uri.description)
        } catch is CancellationError {
            throw exchange.failure(.cancelled, of: uri.description)
        } catch let error as LoadFailure {
            throw error
        } catch let error as ResourceError {
            throw .failed(error)
        } catch {
            throw .failed(
                ResourceError(.file, "\(part.path) cannot be written (\(error)); check its folder and the free space"))
        }
        return offset
    }

    private func finish(_ part: URL, at destination: URL) throws(LoadFailure) {
        // Replaces a former file in one step, and never a folder.
        guard rename(part.path, destination.path) == 0 else {
            throw .failed(
                ResourceError(.file, "\(destination.path) cannot be written (errno \(errno)); check its folder"))
        }
    }

    private func remove(_ uri: ResourceURI, owner: String) async throws(LoadFailure) {
        try await cache.stored("ending a transfer") { try $0.transfers.remove(.download, uri, owner: owner) }
    }
}
