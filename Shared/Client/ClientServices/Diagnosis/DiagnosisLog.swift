import Concurrency
public import Foundation
public import Logging
import MobileSync

/// A log on the device that an operator can request: one file per hour and level, limited in size and age.
///
/// The operating system has a line when the call returns, so the line survives a crash of the app. A line that cannot
/// be written is dropped; the log never makes the app fail. Files are not encrypted: do not log secrets or personal
/// data.
public final class DiagnosisLog: Sendable {
    private struct OpenFile {
        var file: LogFile
        let handle: FileHandle
        var isFull = false
    }

    private struct State {
        var open: [Logger.Level: OpenFile] = [:]
        /// The size of all files: the last measured size and the bytes written since then.
        var total = 0
    }

    private let folder: URL
    private let limits: DiagnosisLogLimits
    private let now: @Sendable () -> Date
    private let state = LockedValue(State())

    /// Opens the log and deletes files that are too old.
    ///
    /// - Parameters:
    ///   - folder: created when it is missing. Only this log can use it, in one process at a time.
    ///   - limits: the limits of size and age.
    ///   - now: the clock of the lines; the device's clock by default.
    /// - Throws: `ClientServiceError`: `store` when the folder cannot be created; `invalidArgument` when `totalBytes`
    ///   is less than seven times `fileBytes`.
    public init(
        folder: URL, limits: DiagnosisLogLimits = DiagnosisLogLimits(),
        now: @escaping @Sendable () -> Date = { Date() }
    ) throws(ClientServiceError) {
        guard limits.fileBytes >= 1, limits.totalBytes / Logger.Level.allCases.count >= limits.fileBytes else {
            throw ClientServiceError(.invalidArgument, "totalBytes must be at least seven times fileBytes")
        }
        do { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) } catch {
            throw ClientServiceError(.store, "\(folder.path) cannot be created (\(error)); check space and permissions")
        }
        self.folder = folder
        self.limits = limits
        self.now = now
        state.withLock { tidy(&$0, at: now().milliseconds) }
    }

    /// Returns a log handler that writes to this log, for `LoggingSystem.bootstrap` or for one `Logger`.
    public func handler(label: String, level: Logger.Level = .info) -> DiagnosisLogHandler {
        DiagnosisLogHandler(log: self, label: label, logLevel: level)
    }

    /// Writes one line with the current time. When the file of the hour is full, the line is dropped.
    public func append(
        level: Logger.Level, label: String, message: String, metadata: Logger.Metadata = [:]
    ) {
        let time = now().milliseconds
        let line = LogLine.bytes(at: time, level: level, label: label, message: message, metadata: metadata)
        state.withLock { state in
            guard var open = opened(level, at: time, in: &state), !open.isFull else { return }
            var bytes = line
            if open.file.bytes + line.count > limits.fileBytes {
                open.isFull = true
                bytes = LogLine.bytes(
                    at: time, level: level, label: label,
                    message: "the file is full; further lines of this hour are dropped",
                    metadata: [:])
            }
            do { try open.handle.write(contentsOf: Data(bytes)) } catch { return }
            open.file.bytes += bytes.count
            state.open[level] = open
            state.total += bytes.count
            if state.total > limits.totalBytes { tidy(&state, at: time) }
        }
    }

    /// The current files, sorted by hour.
    func files() -> [LogFile] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.compactMap { name in
            let attributes = try? FileManager.default.attributesOfItem(atPath: url(name).path)
            return LogFile(name: name, bytes: (attributes?[.size] as? NSNumber)?.intValue ?? 0)
        }.sorted { ($0.hour, $0.level) < ($1.hour, $1.level) }
    }

    /// The contents of a file; nil when the file does not exist any more.
    func contents(of file: LogFile) -> Data? { try? Data(contentsOf: url(file.name)) }

    private func url(_ name: String) -> URL { folder.appendingPathComponent(name) }

    private func opened(_ level: Logger.Level, at time: Int64, in state: inout State) -> OpenFile? {
        let wanted = LogFile(at: time, level: level)
        if let open = state.open[level], open.file.hour == wanted.hour { return open }
        try? state.open.removeValue(forKey: level)?.handle.close()
        tidy(&state, at: time)
        let path = url(wanted.name).path
        if !FileManager.default.fileExists(atPath: path) {
            guard FileManager.default.createFile(atPath: path, contents: nil) else { return nil }
        }
        guard let handle = FileHandle(forUpdatingAtPath: path), let end = try? handle.seekToEnd() else { return nil }
        var open = OpenFile(file: wanted, handle: handle)
        open.file.bytes = Int(clamping: end)
        open.isFull = open.file.bytes >= limits.fileBytes
        endLine(&open)
        state.open[level] = open
        return open
    }

    /// Completes a last line that a power failure has cut.
    private func endLine(_ open: inout OpenFile) {
        guard open.file.bytes > 0 else { return }
        do {
            try open.handle.seek(toOffset: UInt64(open.file.bytes - 1))
            guard try open.handle.read(upToCount: 1) != Data("\n".utf8) else { return }
            try open.handle.write(contentsOf: Data("\n".utf8))
            open.file.bytes += 1
        } catch {
            _ = try? open.handle.seekToEnd()
        }
    }

    private func tidy(_ state: inout State, at time: Int64) {
        let files = files()
        let deleted = limits.filesToDelete(of: files, now: time)
        for file in deleted {
            if state.open[file.level]?.file.hour == file.hour {
                try? state.open.removeValue(forKey: file.level)?.handle.close()
            }
            try? FileManager.default.removeItem(at: url(file.name))
        }
        state.total = files.reduce(0) { $0 + $1.bytes } - deleted.reduce(0) { $0 + $1.bytes }
    }
}
