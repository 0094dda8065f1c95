/// Every result code of the HTTP API and its meaning for the caller (H1, H3, H5). The API description and the documents
/// contain the same table; tests compare them.
package enum ResultCode: String, Sendable, CaseIterable {
    // Business results: HTTP 200.
    case success = "SUCCESS"
    case duplicatedBizID = "DUPLICATED_BIZ_ID"
    case notOnline = "NOT_ONLINE"
    case argsIsNull = "ARGS_IS_NULL"
    case thirdMessageIDIsNull = "THIRDMSGID_IS_NULL"
    case thirdMessageIDLong = "THIRD_MSG_ID_LONG"
    case payloadLong = "PAYLOAD_LONG"
    case bizNotOnline = "BIZ_NOT_ONLINE"
    case notSupportGlobal = "NOT_SUPPORT_GLOBAL"
    /// The outcome is unknown. Only this code says so, and it says nothing else.
    case systemError = "SYSTEM_ERROR"

    // Refusals: nothing was attempted. Each has its own HTTP status.
    case badRequest = "BAD_REQUEST"
    case unauthorized = "UNAUTHORIZED"
    case forbidden = "FORBIDDEN"
    case notFound = "NOT_FOUND"
    case methodNotAllowed = "METHOD_NOT_ALLOWED"
    case timeout = "TIMEOUT"
    case lengthRequired = "LENGTH_REQUIRED"
    case tooLarge = "TOO_LARGE"
    case uriTooLong = "URI_TOO_LONG"
    case unsupportedMediaType = "UNSUPPORTED_MEDIA_TYPE"
    case rateLimited = "RATE_LIMITED"
    case headersTooLarge = "HEADERS_TOO_LARGE"
    case unavailable = "UNAVAILABLE"

    /// The refusal with this HTTP status; nil if there is none.
    package init?(refusalStatus status: Int) {
        guard let code = Self.allCases.first(where: { !$0.isAttempted && $0.status == status }) else { return nil }
        self = code
    }

    /// The HTTP status of a response with this code.
    package var status: Int {
        switch self {
        case .success, .duplicatedBizID, .notOnline, .argsIsNull, .thirdMessageIDIsNull, .thirdMessageIDLong,
            .payloadLong, .bizNotOnline, .notSupportGlobal, .systemError:
            200
        case .badRequest: 400
        case .unauthorized: 401
        case .forbidden: 403
        case .notFound: 404
        case .methodNotAllowed: 405
        case .timeout: 408
        case .lengthRequired: 411
        case .tooLarge: 413
        case .uriTooLong: 414
        case .unsupportedMediaType: 415
        case .rateLimited: 429
        case .headersTooLarge: 431
        case .unavailable: 503
        }
    }

    /// Whether the call is a business result. Otherwise nothing was attempted.
    package var isAttempted: Bool { status == 200 }

    /// The `success` member: true when exactly one oplog with this thirdMsgId is stored (H1).
    package var isSuccess: Bool {
        switch self {
        case .success, .duplicatedBizID, .notOnline: true
        default: false
        }
    }

    /// The `retryable` member: whether a repeat of the same call with the same thirdMsgId can have another result,
    /// without a change by the caller or operator.
    package var isRetryable: Bool {
        switch self {
        case .systemError, .timeout, .rateLimited, .unavailable: true
        default: false
        }
    }

    /// The meaning of the code and the caller's next step, for the API description.
    package var sentence: String {
        switch self {
        case .success:
            "Done. A single push is accepted and on its way to at least one device; a global push is stored. Nothing to"
                + " do."
        case .notOnline:
            "Only a single push has this answer, with `success` true. No device can take it now. Persistent data is"
                + " stored and goes out later, non-persistent data is dropped; data whose `validTimeEnd` has passed is"
                + " never delivered. Nothing to do."
        case .duplicatedBizID:
            "This `thirdMsgId` was accepted before; `success` is true and `oplogId` is of that first call. Nothing to"
                + " do after a repeat. Send new data under a new `thirdMsgId`."
        case .argsIsNull:
            "A parameter is missing or wrong, the body is not readable, or there is no such oplog; `detail` says which."
                + " Correct the call."
        case .thirdMessageIDIsNull: "`thirdMsgId` is missing. Send an id of your own, unique for each message."
        case .thirdMessageIDLong:
            "`thirdMsgId` has more than \(Limits.thirdMessageIDUnits) characters. Send a shorter one."
        case .payloadLong:
            "`payload` or `binaryPayload` has more than \(Limits.payloadUnits) characters. Send less, or a link to it."
        case .bizNotOnline:
            "The instance is unknown or disabled, or the configuration is unknown, deleted or offline. Check"
                + " `instanceId` and `bizType`, create the configuration or put it online."
        case .notSupportGlobal:
            "The configuration is for the other kind of push, global or single. Call the other path."
        case .systemError:
            "The outcome is unknown: the call may or may not have had its effect. Repeat it with the same `thirdMsgId`."
        case .badRequest: "The request is not valid HTTP/1.1. Correct its form."
        case .unauthorized:
            "The instance takes signed calls only, or the signature is wrong, its key not known, its timestamp more"
                + " than 300 s away, or its nonce used before (REPLAY). `detail` says what to do."
        case .forbidden: "The key is of another instance than `instanceId`. Use a key of this one."
        case .notFound: "There is no such path. Check the address."
        case .methodNotAllowed: "The path has another method; the header `Allow` names it."
        case .timeout: "The request took too long to arrive. Repeat it, and send it at once."
        case .lengthRequired: "There is no Content-Length and the body is not chunked. Send Content-Length."
        case .tooLarge: "The body has more bytes, or the batch more pushes, than the call takes. Send less at a time."
        case .uriTooLong: "Path and query are too long. Send a shorter query."
        case .unsupportedMediaType:
            "Content-Type is not application/json in UTF-8, or Content-Encoding is not identity or UTF-8."
        case .rateLimited:
            "The caller is over its limit: of calls in a second, or of pushes in a day. Repeat the call after the"
                + " seconds in `Retry-After`."
        case .headersTooLarge: "The headers have too many bytes or fields. Send fewer."
        case .unavailable:
            "The service is busy, starting, stopping or without its store. Repeat the call after the seconds in"
                + " `Retry-After`."
        }
    }
}
