import Foundation

/// Uploads files: in one `PUT`, or resumable as in the IETF's draft "Resumable Uploads for HTTP".
///
/// A resumable upload begins with a `PUT` with `Upload-Complete: ?0` and no body; its `Location` accepts the rest by
/// `PATCH` at `Upload-Offset`, and says by `HEAD` how much it has.
struct FileUploader: Sendable {
    /// An upload as the caller requests it.
    struct Request: Sendable {
        let uri: ResourceURI
        let file: URL
        let contentType: String
        let headers: ResourceHeaders
        /// `If-Match`; nil: any version is overwritten.
        let condition: String?
    }

    let files: any FileTransport
    let isResumable: Bool
    let exchange: BackendExchange
    let cache: ResourceCache

    func upload(
        _ request: Request, owner: String, progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(LoadFailure) -> UploadedFile {
        let local: FileFingerprint
        do throws(ResourceError) {
            local = try FileFingerprint(at: request.file)
        } catch {
            throw .failed(error)
        }
        let response: ResourceResponse
        if isResumable {
            response = try await resume(request, local, owner: owner, progress: progress)
        } else {
            let message = ResourceRequest(
                method: "PUT", uri: request.uri.description, headers: fields(of: request))
            response = try await send(message, request, local, from: 0, owner: owner, progress: progress)
        }
        let uri = request.uri
        switch response.status {
        case 200...299:
            try await cache.stored("ending a transfer") { transaction in
                try transaction.transfers.remove(.upload, uri, owner: owner)
                // The copy in the cache is of the former version.
                try transaction.refreshes.mark(uri, refresh: true, owner: owner)
            }
            exchange.sharedState.wake()
            let place = response.headers["Location"].flatMap(exchange.reference)
            return UploadedFile(uri: (place ?? uri).description, etag: exchange.tag(response))
        case 412:
            try await remove(uri, owner: owner)
            throw .failed(
                ResourceError(
                    .conflict,
                    "the backend has another version of \(uri) and keeps it; download it and decide, or upload with "
                        + "CLIENT_WINS", status: 412))
        default: throw .failed(exchange.refusal(response, of: uri))
        }
    }

    private func fields(of request: Request) -> ResourceHeaders {
        var fields = ResourceHeaders()
        fields.merge(request.headers)
        fields.add("Content-Type", request.contentType)
        if let condition = request.condition { fields.add("If-Match", condition) }
        return fields
    }

    /// Sends the file from an offset to its end.
    private func send(
        _ message: ResourceRequest, _ request: Request, _ local: FileFingerprint, from offset: Int64, owner: String,
        progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(LoadFailure) -> ResourceResponse {
        progress(TransferProgress(transferred: offset, total: local.size))
        let response: ResourceResponse
        do {
            response = try await files.upload(
                exchange.authorized(message, owner: owner), from: request.file, offset: offset,
                length: local.size - offset
            ) { sent in progress(TransferProgress(transferred: offset + sent, total: local.size)) }
        } catch {
            throw exchange.failure(error, of: message.uri)
        }
        try await exchange.record(response)
        return response
    }

    // MARK: Resumable uploads

    private func resume(
        _ request: Request, _ local: FileFingerprint, owner: String,
        progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(LoadFailure) -> ResourceResponse {
        let saved = try await cache.read("reading a transfer") { try $0.transfers.upload(request.uri, owner: owner) }
        if let saved, saved.file == local, saved.condition == request.condition,
            saved.contentType == request.contentType
        {
            let head = try await exchange.send(
                ResourceRequest(method: "HEAD", uri: saved.place.description), owner: owner)
            switch head.status {
            // The former call sent everything, and its response was lost. These fields are those of the upload.
            case 200...299 where head.headers["Upload-Complete"] == "?1":
                return ResourceResponse(status: 200, headers: ResourceHeaders(), body: [])
            case 200...299:
                guard let offset = head.headers["Upload-Offset"].flatMap({ Int64($0) }),
                    (0...local.size).contains(offset)
                else {
                    throw .failed(ResourceError(.answer, "\(saved.place) has no valid Upload-Offset"))
                }
                return try await append(request, local, to: saved.place, from: offset, owner: owner, progress: progress)
            // The backend has forgotten the upload; it begins again.
            case 404, 410: break
            default: return head
            }
        }
        try await remove(request.uri, owner: owner)
        var headers = fields(of: request)
        headers.add("Upload-Complete", "?0")
        headers.add("Upload-Length", "\(local.size)")
        let begun = try await exchange.send(
            ResourceRequest(method: "PUT", uri: request.uri.description, headers: headers), owner: owner)
        guard (200...299).contains(begun.status) else { return begun }
        guard let place = begun.headers["Location"].flatMap(exchange.reference) else {
            throw .failed(
                ResourceError(
                    .answer,
                    "the backend does not accept resumable uploads at \(request.uri): its response has no Location; "
                        + "set resumableUploads to false"))
        }
        let state = FileTransferTable.Upload(
            place: place, file: local, contentType: request.contentType, condition: request.condition)
        try await cache.stored("storing a transfer") { try $0.transfers.store(state, of: request.uri, owner: owner) }
        return try await append(request, local, to: place, from: 0, owner: owner, progress: progress)
    }

    private func append(
        _ request: Request, _ local: FileFingerprint, to place: ResourceURI, from offset: Int64, owner: String,
        progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(LoadFailure) -> ResourceResponse {
        var headers = ResourceHeaders()
        headers.merge(request.headers)
        headers.add("Content-Type", "application/partial-upload")
        headers.add("Upload-Offset", "\(offset)")
        headers.add("Upload-Complete", "?1")
        return try await send(
            ResourceRequest(method: "PATCH", uri: place.description, headers: headers), request, local, from: offset,
            owner: owner, progress: progress)
    }

    private func remove(_ uri: ResourceURI, owner: String) async throws(LoadFailure) {
        try await cache.stored("ending a transfer") { try $0.transfers.remove(.upload, uri, owner: owner) }
    }
}
