/// Every bound of the client services. A push that exceeds one is refused; a call throws `invalidArgument`.
enum ServiceLimits {
    /// Bytes of one push's JSON.
    static let pushBytes = 1_000_000
    /// Switches in a set.
    static let switches = 2_000
    /// Characters (UTF-16 units) of the key of a switch, a value or a cache entry.
    static let keyUnits = 256
    /// Badges in one tree, the app's own apart.
    static let badges = 500
    /// Segments of a badge's path.
    static let pathSegments = 8
    /// Characters (UTF-16 units) of one segment, of a business and of a badge's text.
    static let wordUnits = 64
    /// The number that one badge may show; the sum of all of them stays far from an overflow.
    static let badgeNumber = 1_000_000
    /// Taps that wait to be reported; beyond that the oldest are given up.
    static let pendingTaps = 1_000
    /// Bytes of one value in a key-value store, encoded.
    static let valueBytes = 4_000_000
    /// Characters (UTF-16 units) of a user id, as the service has it.
    static let userUnits = 100
    /// Diagnosis tasks: so many may have work left, and beyond that the oldest that have ended are forgotten.
    static let tasks = 100
    /// Bytes that a command may ask for at most, and gets when it says nothing.
    static let bundleBytes = 20_000_000
    /// Elements that a listener may be behind before it loses the oldest.
    static let behind = 64

    /// - Throws: `ClientServiceError.invalidArgument` for a user id that is empty, too long, or has a NUL.
    static func check(userID: String) throws(ClientServiceError) {
        guard (1...userUnits).contains(userID.utf16.count), !userID.utf8.contains(0) else {
            throw ClientServiceError(.invalidArgument, "a user id has 1 to \(userUnits) characters without NUL")
        }
    }

    /// - Throws: `ClientServiceError.invalidArgument` for a key that is empty, too long, or has a NUL.
    static func check(key: String) throws(ClientServiceError) {
        guard (1...keyUnits).contains(key.utf16.count), !key.utf8.contains(0) else {
            throw ClientServiceError(.invalidArgument, "a key has 1 to \(keyUnits) characters without NUL")
        }
    }
}
