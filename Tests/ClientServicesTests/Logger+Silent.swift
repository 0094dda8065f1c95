import Logging

extension Logger {
    /// For what logs while a test makes it fail.
    static let silent = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
}
