/// Requests ranges of keys from the server. `KeyRangeOperations` is the default; an app can implement it with a request
/// of its own.
public protocol KeyRangeSource: Sendable {
    /// Returns a range that the server grants to no other device.
    ///
    /// - Parameter use: the use of all ranges that were not reported as used up. After an error, the next call reports
    ///   it again.
    func requestRange(reporting use: [KeyUse]) async throws -> KeyRange
}
