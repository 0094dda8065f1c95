/// The limits of the client services. A push that exceeds one is refused; a call throws `invalidArgument`.
enum ServiceLimits {
    /// The size of a push's JSON, in bytes.
    static let pushBytes = 1_000_000
    /// The number of switches.
    static let switches = 2_000
    /// The length of the key of a switch, a value or a cache entry, in UTF-16 units.
    static let keyUnits = 256
    /// The number of the server's badges in one tree.
    static let badges = 500
    /// The number of widget ids in a badge path.
    static let pathSegments = 8
    /// The length of a widget id, of a business and of a badge's text, in UTF-16 units.
    static let wordUnits = 64
    /// The largest number of one badge. The sum of all badges cannot overflow.
    static let badgeNumber = 1_000_000
    /// The number of unreported taps; more taps delete the oldest ones.
    static let pendingTaps = 1_000
    /// The size of one encoded value in a key-value store, in bytes.
    static let valueBytes = 4_000_000
    /// The length of a user id, in UTF-16 units; the same as the service's limit.
    static let userUnits = 100
    /// The number of diagnosis tasks. A command is refused when this many tasks are unfinished; otherwise the oldest
    /// finished tasks are deleted.
    static let tasks = 100
    /// The largest and the default size of an upload, in bytes.
    static let bundleBytes = 20_000_000
    /// The number of unread elements that a stream keeps.
    static let unreadElements = 64

    /// - Throws: `ClientServiceError.invalidArgument` for a user id that is empty, too long, or has a NUL.
    static func check(userID: String) throws(ClientServiceError) {
        guard (1...userUnits).contains(userID.utf16.count), !userID.utf8.contains(0) else {
            throw ClientServiceError(.invalidArgument, "a user id must have 1 to \(userUnits) characters and no NUL")
        }
    }

    /// - Throws: `ClientServiceError.invalidArgument` when the pattern is not a regular expression.
    static func expression(of pattern: String) throws(ClientServiceError) -> Regex<AnyRegexOutput> {
        do { return try Regex(pattern) } catch {
            throw ClientServiceError(.invalidArgument, "\(pattern) is not a regular expression: \(error)")
        }
    }

    /// - Throws: `ClientServiceError.invalidArgument` for a key that is empty, too long, or has a NUL.
    static func check(key: String) throws(ClientServiceError) {
        guard (1...keyUnits).contains(key.utf16.count), !key.utf8.contains(0) else {
            throw ClientServiceError(.invalidArgument, "a key must have 1 to \(keyUnits) characters and no NUL")
        }
    }
}
