/// Reports badge taps to the server. An app implements it to report taps in its own way; `BadgeTapOperations` is the
/// default.
public protocol BadgeTapReporter: Sendable {
    /// Accepts responsibility for a tap. The tap must be on disk, or at the server, when the call returns. The reporter
    /// must ignore a tap whose id it already has: a tap can be reported again, for example after a crash.
    ///
    /// - Throws: any error when the tap cannot be accepted now; it is then reported again later.
    func report(_ tap: BadgeTap) throws
}
