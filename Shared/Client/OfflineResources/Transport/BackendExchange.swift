import Foundation
import Logging

/// Exchanges requests and responses with the backend, and records whether the backend can be reached.
struct BackendExchange: Sendable {
    let transport: any ResourceTransport
    let cache: ResourceCache
    let sharedState: ResourceSharedState
    let logger: Logger

    /// Sends a request with a user's credentials.
    ///
    /// - Throws: `unreachable`, also when the status says that the backend is temporarily unavailable.
    func send(_ request: ResourceRequest, owner: String) async throws(LoadFailure) -> ResourceResponse {
        let request = authorized(request, owner: owner)
        let response: ResourceResponse
        do {
            response = try await transport.send(request)
        } catch {
            throw failure(error, of: request.uri)
        }
        try await record(response)
        return response
    }

    /// A request with the user whose credentials the transport adds.
    func authorized(_ request: ResourceRequest, owner: String) -> ResourceRequest {
        var request = request
        request.userID = owner.isEmpty ? nil : owner
        return request
    }

    /// Records a failure of the transport.
    func failure(_ error: TransportError, of uri: String) -> LoadFailure {
        switch error {
        case .notSent, .noAnswer:
            sharedState.failed(retryAfter: nil)
            logger.debug("the backend could not be reached", metadata: ["reason": "\(error)"])
            if case .notSent = error { return .unreachable(mayHaveArrived: false) }
            return .unreachable(mayHaveArrived: true)
        case .unusable(let reason): return .failed(ResourceError(.answer, "\(uri): \(reason)"))
        case .noCredentials(let reason):
            return .failed(ResourceError(.signInNeeded, "no credentials for \(uri): \(reason)"))
        case .cancelled: return .failed(ResourceError(.cancelled, "the request for \(uri) was cancelled"))
        }
    }

    /// Records a response.
    ///
    /// - Throws: `unreachable` when the status says that the backend is temporarily unavailable.
    func record(_ response: ResourceResponse) async throws(LoadFailure) {
        if EditVerdict.isPassing(response.status) {
            let seconds = response.headers["Retry-After"].flatMap(Double.init)
            sharedState.failed(retryAfter: seconds)
            throw .unreachable(mayHaveArrived: true)
        }
        sharedState.answered()
        try await recordBatchPath(response)
    }

    private func recordBatchPath(_ response: ResourceResponse) async throws(LoadFailure) {
        guard let header = response.headers["MSS-Sync-Batch"] else { return }
        let path = reference(header)?.description
        try await cache.stored("storing the batch path") { transaction in
            if try transaction.batchPath() != path { try transaction.setBatchPath(path) }
        }
    }

    /// A reference in a response as a URI below the base URL; nil when it is not below it.
    func reference(_ text: String) -> ResourceURI? {
        guard !text.isEmpty, let relative = transport.relative(text) else { return nil }
        return try? ResourceURI(relative)
    }

    /// The entity tag of a response; nil when there is none that is well-formed.
    func tag(_ response: ResourceResponse) -> String? {
        response.headers["ETag"].flatMap { ETag.isWellFormed($0) ? $0 : nil }
    }

    /// The backend's time at which the response was current. `Date` has whole seconds, so the response was current
    /// until the end of that second.
    func asOf(_ response: ResourceResponse) -> Date {
        response.headers["Date"].flatMap(Date.init(httpDate:))?.addingTimeInterval(0.999) ?? cache.clock()
    }

    /// The error of a response that is no success.
    func refusal(_ response: ResourceResponse, of uri: ResourceURI) -> ResourceError {
        response.status == 401
            ? ResourceError(
                .signInNeeded, "the backend did not accept the credentials for \(uri); sign in", status: 401)
            : ResourceError(
                .refused, "the backend answered \(uri) with status \(response.status)", status: response.status)
    }
}
