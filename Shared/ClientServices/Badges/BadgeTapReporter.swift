/// Takes taps up to the server.
public protocol BadgeTapReporter: Sendable {
    /// Takes a tap over for good: it is on the disk, or with the server, when this returns. One that is known by its id
    /// is left alone: a tap may be reported once more, as after a crash.
    ///
    /// - Throws: when it cannot be taken now; it is reported again.
    func report(_ tap: BadgeTap) throws
}
