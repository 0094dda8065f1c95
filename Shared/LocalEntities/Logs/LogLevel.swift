/// How serious a log record is; the names are the neighbour's (spec, two-way §2).
public enum LogLevel: String, Sendable, Hashable, CaseIterable, Comparable {
    case off = "OFF"
    case fatal = "FATAL"
    case error = "ERROR"
    case warn = "WARN"
    case info = "INFO"
    case debug = "DEBUG"

    /// From `off`, which is nothing, to `debug`, which is everything.
    public static func < (left: LogLevel, right: LogLevel) -> Bool {
        (allCases.firstIndex(of: left) ?? 0) < (allCases.firstIndex(of: right) ?? 0)
    }
}
