import Logging

/// What a diagnosis log may take.
public struct DiagnosisLogLimits: Sendable, Hashable {
    /// Bytes of one file, that is of one hour and level: what is logged beyond is dropped, and the file says so.
    public var fileBytes = 2_000_000
    /// Bytes of all files: the oldest go first. At least seven times `fileBytes`, so that the present hour always
    /// stays.
    public var totalBytes = 20_000_000
    /// What is older goes.
    public var age: Duration = .seconds(7 * 24 * 3_600)

    /// The defaults: 2 MB, 20 MB, 7 days.
    public init() {}

    /// The files that have to go, the oldest first; those of the present hour stay; pure.
    ///
    /// - Parameter now: in milliseconds since 1970. A file from later, as of a clock that was wrong, is not too old.
    func doomed(of files: [LogFile], now: Int64) -> [LogFile] {
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
