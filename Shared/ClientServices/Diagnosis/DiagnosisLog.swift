public import Foundation
public import Logging
import Synchronization

/// A log on the device that an operator can ask for: files per hour and level, bounded in size and age.
///
/// A line is with the operating system when its call returns, so it outlives a crash of the app. What cannot be written
/// is dropped: a log never fails the app. Files are not encrypted: secrets and personal data do not belong in logs.
public final class DiagnosisLog: Sendable {
    private struct OpenFile {
        var file: LogFile
        let handle: FileHandle
        var isFull = false
    }

    private struct State {
        var open: [Logger.Level: OpenFile] = [:]
        /// Of all files, as far as it was written since it was last counted.
        var total = 0
    }

    private let folder: URL
    private let limits: DiagnosisLogLimits
    private let now: @Sendable () -> Date
    private let state = Mutex(State())

    /// Opens the log and removes what is too old.
    ///
    /// - Parameter folder: made when it is not there; for this log alone, of one process at a time.
    /// - Throws: `ClientServiceError`: `store` when the folder cannot be made; `invalidArgument` for limits that do not
    ///   go together.
    public init(
        folder: URL, limits: DiagnosisLogLimits = DiagnosisLogLimits(),
        now: @escaping @Sendable () -> Date = { Date() }
    ) throws(ClientServiceError) {
        guard limits.fileBytes >= 1, limits.totalBytes / Logger.Level.allCases.count >= limits.fileBytes else {
            throw ClientServiceError(.invalidArgument, "totalBytes is at least seven times fileBytes")
        }
        do { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) } catch {
            throw ClientServiceError(.store, "\(folder.path) cannot be made (\(error)); check space and rights")
        }
        self.folder = folder
        self.limits = limits
        self.now = now
        state.withLock { tidy(&$0, at: now().milliseconds) }
    }

    /// A handler that writes to this log, for `LoggingSystem.bootstrap` or one `Logger`.
    public func handler(label: String, level: Logger.Level = .info) -> DiagnosisLogHandler {
        DiagnosisLogHandler(log: self, label: label, logLevel: level)
    }

    /// Writes one line.
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
                    at: time, level: level, label: label, message: "the file is full; the rest of the hour is dropped",
                    metadata: [:])
            }
            do { try open.handle.write(contentsOf: Data(bytes)) } catch { return }
            open.file.bytes += bytes.count
            state.open[level] = open
            state.total += bytes.count
            if state.total > limits.totalBytes { tidy(&state, at: time) }
        }
    }

    /// The files as they are now, in the order of hours.
    func files() -> [LogFile] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.compactMap { name in
            let attributes = try? FileManager.default.attributesOfItem(atPath: url(name).path)
            return LogFile(name: name, bytes: (attributes?[.size] as? NSNumber)?.intValue ?? 0)
        }.sorted { ($0.hour, $0.level) < ($1.hour, $1.level) }
    }

    /// What a file holds now; nil: it is gone.
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

    /// A power cut may have left half a line.
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
        let doomed = limits.doomed(of: files, now: time)
        for file in doomed {
            if state.open[file.level]?.file.hour == file.hour {
                try? state.open.removeValue(forKey: file.level)?.handle.close()
            }
            try? FileManager.default.removeItem(at: url(file.name))
        }
        state.total = files.reduce(0) { $0 + $1.bytes } - doomed.reduce(0) { $0 + $1.bytes }
    }
}
