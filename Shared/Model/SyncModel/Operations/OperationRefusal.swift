/// A device operation that the service refused (DeviceProtocol.md, Operations).
package struct OperationRefusal: Hashable, Sendable {
    package var operationID: String
    /// One of `OperationRefusalCode`, or a newer code.
    package var code: UInt32
    /// For developers.
    package var message: String

    package init(operationID: String, code: UInt32, message: String) {
        self.operationID = operationID
        self.code = code
        self.message = message
    }
}

/// Why an operation was refused or not accepted (DeviceProtocol.md, Operations). The numbers are HTTP status codes
/// (ENT10).
package enum OperationRefusalCode {
    /// It exceeds a limit and can never be accepted.
    package static let malformed: UInt32 = 400
    /// No user is bound, or the verdict is invalid: sent again after the next bind.
    package static let signInAgain: UInt32 = 401
    /// The instance has no endpoint for operations.
    package static let noEndpoint: UInt32 = 404
    /// It belongs to another bind: sent again under the current one.
    package static let otherBind: UInt32 = 409
    /// The device has too many open operations: sent again later.
    package static let tooMany: UInt32 = 429
    /// The service could not store it now: sent again later.
    package static let unavailable: UInt32 = 503
    /// The service has stopped calling the tenant after too many attempts.
    package static let givenUp: UInt32 = 504

    /// How a sender handles a refused operation.
    package enum Remedy: Hashable, Sendable {
        /// It is finished: the app is notified.
        case none
        /// It is sent again after the next bind.
        case bind
        /// It is sent again after a pause.
        case later
    }

    /// The remedy for a code, also for an unknown one.
    package static func remedy(of code: UInt32) -> Remedy {
        switch code {
        case signInAgain, otherBind: .bind
        case 408, 425, tooMany, 500...: .later
        default: .none
        }
    }
}
