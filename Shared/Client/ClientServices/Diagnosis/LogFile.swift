import Logging

/// One file of a diagnosis log: the lines of one hour and one level.
struct LogFile: Hashable, Sendable {
    /// The length of an hour in milliseconds.
    static let hourMilliseconds: Int64 = 3_600_000

    /// The start of the hour, in milliseconds since 1970.
    let hour: Int64
    let level: Logger.Level
    var bytes = 0

    /// The file name, such as `2026-11-23T12-info.log`.
    var name: String { "\(DiagnosisTime.hourText(hour))-\(level.rawValue).log" }

    init(at milliseconds: Int64, level: Logger.Level, bytes: Int = 0) {
        let rest = milliseconds % Self.hourMilliseconds
        hour = milliseconds - (rest < 0 ? rest + Self.hourMilliseconds : rest)
        self.level = level
        self.bytes = bytes
    }

    /// Parses a file name; nil when it is not the name of a log file.
    init?(name: String, bytes: Int) {
        guard name.hasSuffix(".log"), let dash = name.lastIndex(of: "-"),
            let hour = DiagnosisTime.hour(name[..<dash]),
            let level = Logger.Level(rawValue: String(name[dash...].dropFirst().dropLast(4)))
        else { return nil }
        self.init(at: hour, level: level, bytes: bytes)
    }
}
