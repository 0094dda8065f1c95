/// The severity of a log record. The names are those of the Client Object API (ENT6).
public enum LogLevel: String, Sendable, Hashable, CaseIterable, Comparable {
    case off = "OFF"
    case fatal = "FATAL"
    case error = "ERROR"
    case warn = "WARN"
    case info = "INFO"
    case debug = "DEBUG"

    /// The order is from `off`, which selects no record, to `debug`, which selects all.
    public static func < (left: LogLevel, right: LogLevel) -> Bool {
        (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
    }
}
