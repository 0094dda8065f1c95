/// Why an operation was not taken, or not accepted (DeviceProtocol.md, Operations); the numbers of HTTP, as the
/// neighbours' log records have them (spec, two-way §2).
package enum OperationRefusalCode {
    /// Breaks a limit: it will never be taken.
    package static let malformed: UInt32 = 400
    /// No user is bound, or the tenant calls the session invalid: again once a user is bound anew.
    package static let signInAgain: UInt32 = 401
    /// The instance has no endpoint that takes operations.
    package static let noEndpoint: UInt32 = 404
    /// Of another bind than the present one: again under the present one.
    package static let otherBind: UInt32 = 409
    /// The device has too many that are not done: again later.
    package static let tooMany: UInt32 = 429
    /// The service could not take it now: again later.
    package static let unavailable: UInt32 = 503
    /// The service has given up calling the tenant.
    package static let givenUp: UInt32 = 504

    /// What whoever sent it does with an operation that was refused.
    package enum Remedy: Hashable, Sendable {
        /// It is over: the app is told.
        case none
        /// It is sent again once a user is bound anew.
        case bind
        /// It is sent again after a while.
        case later
    }

    /// The remedy of a code, also of one that this build does not know.
    package static func remedy(of code: UInt32) -> Remedy {
        switch code {
        case signInAgain, otherBind: .bind
        case 408, 425, tooMany, 500...: .later
        default: .none
        }
    }
}
