import Logging

/// The limits of a diagnosis log.
public struct DiagnosisLogLimits: Sendable, Hashable {
    /// The largest size of one file, which has the lines of one hour and one level, in bytes. Further lines are
    /// dropped, and a last line in the file says so.
    public var fileBytes = 2_000_000
    /// The largest size of all files, in bytes. The oldest files are deleted first. It must be at least seven times
    /// `fileBytes`, so that the files of the current hour always fit.
    public var totalBytes = 20_000_000
    /// The longest age of a file; older files are deleted.
    public var age: Duration = .seconds(7 * 24 * 3_600)

    /// The defaults: 2 MB a file, 20 MB in all, 7 days.
    public init() {}

    /// The files to delete, the oldest first. The files of the current hour stay. Pure.
    ///
    /// - Parameter now: milliseconds since 1970. A file with a later time, written under a wrong clock, is not too old.
    func filesToDelete(of files: [LogFile], now: Int64) -> [LogFile] {
        let present = LogFile(at: now, level: .info).hour
        let oldest = now - age.components.seconds * 1_000
        var total = files.reduce(0) { $0 + $1.bytes }
        return files.sorted { ($0.hour, $0.level) < ($1.hour, $1.level) }.filter { file in
            guard file.hour != present else { return false }
            let isOld = file.hour + LogFile.hourMilliseconds <= oldest
            guard isOld || total > totalBytes else { return false }
            total -= file.bytes
            return true
        }
    }
}
