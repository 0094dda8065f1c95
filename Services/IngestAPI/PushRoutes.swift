import Foundation
import HTTPTypes
import Hummingbird
import Logging
import Metrics
import NIOCore
import SyncModel
import Synchronization

/// The HTTP face: methods, headers and sizes; what is no business result gets its HTTP status (spec H1).
struct PushRoutes: Sendable {
    /// Bytes of a body (spec H1).
    static let bodyMax = 65_536

    let submit: @Sendable (PushRequest, PushRequest.Scope) async -> PushAnswer
    let logger: Logger
    private let duration = Timer(label: "mss_ingest_request_duration")
    private let requestIDs = RequestIDs()

    init(logger: Logger, submit: @escaping @Sendable (PushRequest, PushRequest.Scope) async -> PushAnswer) {
        self.logger = logger
        self.submit = submit
    }

    /// The one responder: two paths, so a table of routes would only hide the order of checks.
    func respond(to request: Request) async -> Response {
        let requestID = requestIDs.next()
        let start = ContinuousClock.now
        defer { duration.recordNanoseconds(Int64((start.duration(to: .now) / .nanoseconds(1)).rounded())) }
        let scope: PushRequest.Scope
        switch request.uri.path {
        case "/webapi/sync/single": scope = .single
        case "/webapi/sync/global": scope = .global
        default: return Self.failure(.notFound, "there is no such path", requestID)
        }
        guard request.method == .post else {
            return Self.failure(.methodNotAllowed, "use POST", requestID, [.allow: "POST"])
        }
        if let refusal = Self.refusal(of: request.headers) { return Self.failure(refusal.0, refusal.1, requestID) }
        let body: [UInt8]
        switch await Self.body(of: request) {
        case .success(let bytes): body = bytes
        case .failure(let failure): return Self.failure(failure.status, failure.detail, requestID)
        }
        let answer: PushAnswer
        do throws(PushRequest.Refusal) {
            let push = try PushRequest(
                instanceID: request.uri.queryParameters.get("instanceId"), body: body, scope: scope)
            answer = await submit(push, scope)
        } catch {
            answer = PushAnswer(code: error.code, detail: error.detail)
        }
        Counter(label: "mss_ingest_pushes", dimensions: [("code", answer.code.rawValue)]).increment()
        guard answer.isAttempted else {
            return Self.response(.serviceUnavailable, answer, requestID, [.retryAfter: "1"])
        }
        return Self.response(.ok, answer, requestID, [:])
    }

    private static func refusal(of headers: HTTPFields) -> (HTTPResponse.Status, String)? {
        let type = (headers[.contentType] ?? "").split(separator: ";", maxSplits: 1).first ?? ""
        guard type.lowercased().trimmingCharacters(in: .whitespaces) == "application/json" else {
            return (.unsupportedMediaType, "Content-Type must be application/json")
        }
        // The guide's samples send Content-Encoding: UTF-8, which is no compression.
        let encoding = (headers[.contentEncoding] ?? "identity").lowercased()
        guard ["identity", "utf-8", "utf8"].contains(encoding) else {
            return (.unsupportedMediaType, "a compressed body is not taken")
        }
        if let length = headers[.contentLength] {
            guard let bytes = Int(length), bytes >= 0 else { return (.badRequest, "Content-Length is not a number") }
            guard bytes <= bodyMax else { return (.contentTooLarge, "the body has more than \(bodyMax) bytes") }
        } else if headers[.transferEncoding] == nil {
            return (.lengthRequired, "Content-Length is missing")
        }
        return nil
    }

    private struct BodyFailure: Error {
        let status: HTTPResponse.Status
        let detail: String
    }

    /// Reads the body within its limits of size and time (reliability SEC3).
    private static func body(of request: Request) async -> Result<[UInt8], BodyFailure> {
        await withTaskGroup(of: Result<[UInt8], BodyFailure>.self) { group in
            group.addTask {
                do {
                    let buffer = try await request.body.collect(upTo: bodyMax)
                    return .success(Array(buffer.readableBytesView))
                } catch is NIOTooManyBytesError {
                    return .failure(.init(status: .contentTooLarge, detail: "the body has more than \(bodyMax) bytes"))
                } catch {
                    return .failure(.init(status: .badRequest, detail: "the body could not be read"))
                }
            }
            group.addTask {
                try? await Task.sleep(for: .seconds(10))
                return .failure(.init(status: .requestTimeout, detail: "the body did not come within 10 s"))
            }
            defer { group.cancelAll() }
            return await group.next() ?? .failure(.init(status: .badRequest, detail: "the body could not be read"))
        }
    }

    private static func failure(
        _ status: HTTPResponse.Status, _ detail: String, _ requestID: String, _ headers: HTTPFields = [:]
    ) -> Response {
        response(status, PushAnswer(code: .systemError, detail: detail, isAttempted: false), requestID, headers)
    }

    private static func response(
        _ status: HTTPResponse.Status, _ answer: PushAnswer, _ requestID: String, _ extra: HTTPFields
    ) -> Response {
        var headers = extra
        headers[.contentType] = "application/json;charset=UTF-8"
        headers[.requestID] = requestID
        return Response(
            status: status, headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(string: answer.json(requestID: requestID))))
    }
}

extension HTTPField.Name {
    // A valid token, so the optional initializer cannot fail.
    fileprivate static let requestID = HTTPField.Name("X-Request-Id") ?? .contentType
}

/// Ids of requests: a random start for the process, then counting.
private final class RequestIDs: Sendable {
    private let prefix = String(UInt64.random(in: .min ... .max), radix: 36)
    private let count = Atomic<UInt64>(0)

    func next() -> String { "\(prefix)-\(count.add(1, ordering: .relaxed).newValue)" }
}
