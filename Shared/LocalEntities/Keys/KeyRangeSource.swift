/// Asks the server for keys; an app's adapter does, by a request of its own.
public protocol KeyRangeSource: Sendable {
    /// A range that the server grants nobody else.
    ///
    /// - Parameter use: of all ranges that the server does not know to be used up; when the call throws it comes again.
    func requestRange(reporting use: [KeyUse]) async throws -> KeyRange
}
