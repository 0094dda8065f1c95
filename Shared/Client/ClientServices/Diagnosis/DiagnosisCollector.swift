import Crypto
import Foundation

/// Collects lines of a log into bundles and reads the parts of a bundle.
struct DiagnosisCollector: Sendable {
    let log: DiagnosisLog
    /// The folder of the bundles. Nothing else can be in it: `deleteAll` removes unknown files.
    let folder: URL
    let settings: DiagnosisSettings

    private struct TooLarge: Error {}

    /// Writes the requested lines of all levels, sorted by time, to one file. The file is complete or absent.
    func collect(_ command: DiagnosisCommand) -> Result<DiagnosisBundle, DiagnosisRefusal> {
        let suffix = settings.compress == nil ? "" : settings.compressedSuffix
        let name = "\(command.taskID)-\(command.run).log\(suffix)"
        let unfinished = folder.appendingPathComponent(name + ".unfinished")
        defer { try? FileManager.default.removeItem(at: unfinished) }
        do {
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data().write(to: unfinished)
            let (bytes, digest) = try write(command, to: unfinished)
            guard bytes > 0 else { return .failure(.nothingThere) }
            let file = folder.appendingPathComponent(name)
            try? FileManager.default.removeItem(at: file)
            try FileManager.default.moveItem(at: unfinished, to: file)
            return .success(
                DiagnosisBundle(file: name, bytes: bytes, sha256: digest, partBytes: settings.partBytes))
        } catch is TooLarge {
            return .failure(.tooLarge)
        } catch {
            return .failure(.unreadable)
        }
    }

    private func write(_ command: DiagnosisCommand, to url: URL) throws -> (bytes: Int, sha256: String) {
        let handle = try FileHandle(forWritingTo: url)
        defer { try? handle.close() }
        var (bytes, digest) = (0, SHA256())
        let files = log.files().filter { file in
            file.level >= command.level && file.hour < command.to
                && file.hour + LogFile.hourMilliseconds > command.from
        }
        for hour in Set(files.map(\.hour)).sorted() {
            let lines = lines(of: files.filter { $0.hour == hour }, for: command)
            guard !lines.isEmpty else { continue }
            let piece = try settings.compress?(lines) ?? lines
            bytes += piece.count
            guard bytes <= command.limitBytes else { throw TooLarge() }
            digest.update(data: piece)
            try handle.write(contentsOf: piece)
        }
        try handle.synchronize()
        return (bytes, Self.hex(digest.finalize()))
    }

    /// The requested lines of one hour, sorted by time. Lines of the same millisecond keep the order of the files.
    private func lines(of files: [LogFile], for command: DiagnosisCommand) -> Data {
        let from = Data(DiagnosisTime.text(command.from).utf8)
        let to = Data(DiagnosisTime.text(command.to).utf8)
        let wanted = files.compactMap { log.contents(of: $0) }.flatMap { contents in
            contents.split(separator: UInt8(ascii: "\n")).filter { line in
                let time = line.prefix(LogLine.timeBytes)
                return time.count == LogLine.timeBytes && !time.lexicographicallyPrecedes(from)
                    && time.lexicographicallyPrecedes(to)
            }
        }
        let ordered = wanted.enumerated().sorted { left, right in
            let (one, other) = (left.element.prefix(LogLine.timeBytes), right.element.prefix(LogLine.timeBytes))
            return one.elementsEqual(other) ? left.offset < right.offset : one.lexicographicallyPrecedes(other)
        }
        return ordered.reduce(into: Data()) { lines, line in
            lines += line.element
            lines.append(UInt8(ascii: "\n"))
        }
    }

    /// A part of a bundle; nil when the file is missing or has another size.
    func part(_ number: Int, of bundle: DiagnosisBundle, for task: DiagnosisTask) -> DiagnosisPart? {
        guard let handle = try? FileHandle(forReadingFrom: folder.appendingPathComponent(bundle.file)) else {
            return nil
        }
        defer { try? handle.close() }
        let start = (number - 1) * bundle.partBytes
        guard (1...bundle.parts).contains(number), let end = try? handle.seekToEnd(), end == bundle.bytes,
            (try? handle.seek(toOffset: UInt64(start))) != nil,
            let bytes = try? handle.read(upToCount: bundle.partBytes),
            bytes.count == min(bundle.partBytes, bundle.bytes - start)
        else { return nil }
        return DiagnosisPart(
            taskID: task.command.taskID, run: task.command.run, file: bundle.file, fileBytes: bundle.bytes,
            fileSHA256: bundle.sha256, number: number, total: bundle.parts, bytes: [UInt8](bytes),
            sha256: Self.hex(SHA256.hash(data: bytes)))
    }

    /// Deletes a bundle's file.
    func delete(_ bundle: DiagnosisBundle) {
        try? FileManager.default.removeItem(at: folder.appendingPathComponent(bundle.file))
    }

    /// Deletes files that belong to no task, which a crash can leave behind.
    func deleteAll(but bundles: [DiagnosisBundle]) {
        let kept = Set(bundles.map(\.file))
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [] where !kept.contains(name)
        {
            try? FileManager.default.removeItem(at: folder.appendingPathComponent(name))
        }
    }

    private static func hex(_ bytes: some Sequence<UInt8>) -> String {
        bytes.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
    }
}
