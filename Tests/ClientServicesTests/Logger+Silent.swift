import Logging

extension Logger {
    /// For code that logs when a test makes it fail.
    static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}
