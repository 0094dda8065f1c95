import Foundation
import Logging
import MobileSync
import Testing

@testable import ClientServices

@Suite("Diagnosis: the log") struct DiagnosisLogTests {
    private let folder: TemporaryFolder
    /// 2027-01-15T08:00:00Z.
    private let clock = SetClock(Date(timeIntervalSince1970: 1_800_000_000))

    init() throws { folder = try TemporaryFolder() }

    private func open(fileBytes: Int = 10_000, totalBytes: Int = 100_000, days: Int = 7) throws -> DiagnosisLog {
        var limits = DiagnosisLogLimits()
        (limits.fileBytes, limits.totalBytes, limits.age) = (fileBytes, totalBytes, .seconds(days * 86_400))
        return try DiagnosisLog(folder: folder.url, limits: limits, now: { [clock] in clock.date })
    }

    private func names() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.url.path).sorted()
    }

    private func text(_ name: String) throws -> String {
        String(decoding: try Data(contentsOf: folder.url.appendingPathComponent(name)), as: UTF8.self)
    }

    @Test("each hour and level has a file; a line has time, level, label, message and metadata by name")
    func files() throws {
        let log = try open()
        var logger = Logger(label: "sync") { label in log.handler(label: label, level: .debug) }
        logger[metadataKey: "user"] = "u1"
        clock.advance(0.125)
        logger.info("hello", metadata: ["b": "2", "a": "1"])
        logger.warning("careful")
        logger.trace("below the handler's level")
        clock.advance(3_600)
        logger.info("an hour later")
        #expect(try names() == ["2027-01-15T08-info.log", "2027-01-15T08-warning.log", "2027-01-15T09-info.log"])
        #expect(
            try text("2027-01-15T08-info.log") == "2027-01-15T08:00:00.125Z INFO sync: hello a=1 b=2 user=u1\n")
        #expect(try text("2027-01-15T08-warning.log") == "2027-01-15T08:00:00.125Z WARNING sync: careful user=u1\n")
    }

    @Test("a restart continues in the file of the hour, after an incomplete line too, as after a power cut")
    func restart() throws {
        try open().append(level: .info, label: "a", message: "1")
        let name = "2027-01-15T08-info.log"
        try Data((text(name) + "2027-01-15T08:00:0").utf8).write(to: folder.url.appendingPathComponent(name))
        try open().append(level: .info, label: "a", message: "2")
        #expect(
            try text(name).split(separator: "\n") == [
                "2027-01-15T08:00:00.000Z INFO a: 1", "2027-01-15T08:00:0", "2027-01-15T08:00:00.000Z INFO a: 2",
            ])
    }

    @Test("an event is one line for any text, and a long one is cut between characters") func oneLine() {
        func line(_ message: String) -> String {
            let bytes = LogLine.bytes(at: 0, level: .error, label: "l", message: message, metadata: ["m": "x\ny"])
            return String(decoding: bytes, as: UTF8.self)
        }
        #expect(
            line("a\nb\r\u{1b}[2J\\ ü") == #"1970-01-01T00:00:00.000Z ERROR l: a\nb\u000d\u001b[2J\\ ü m=x\ny"# + "\n")
        for filler in ["x", "ü", "€", "😀"] {
            for lead in ["", "y", "yy", "yyy"] {
                let long = line(lead + String(repeating: filler, count: 20_000))
                #expect(long.hasSuffix("…\n") && !long.contains("\u{fffd}") && long.utf8.count <= LogLine.longest + 1)
                #expect(long.utf8.count > LogLine.longest - 10)
            }
        }
    }

    @Test("a full file accepts no more lines in its hour and says so once; other levels and the next hour do")
    func fullFile() throws {
        let log = try open(fileBytes: 1_000, totalBytes: 7_000)
        for number in 0..<50 { log.append(level: .info, label: "l", message: "\(number)") }
        log.append(level: .error, label: "l", message: "still")
        let lines = try text("2027-01-15T08-info.log").split(separator: "\n")
        #expect(lines.count < 50 && lines.last?.contains("full") == true)
        #expect(lines.filter { $0.contains("full") }.count == 1)
        #expect(try text("2027-01-15T08-error.log").contains("still"))
        clock.advance(3_600)
        log.append(level: .info, label: "l", message: "again")
        #expect(try text("2027-01-15T09-info.log").contains("again"))
    }

    @Test("the files together stay within the limit, the oldest are removed first, and old ones by age")
    func bounds() throws {
        let log = try open(fileBytes: 1_000, totalBytes: 7_000, days: 3)
        for _ in 0..<60 {
            for number in 0..<30 { log.append(level: .info, label: "l", message: "\(number)") }
            clock.advance(3_600)
            // A file exceeds its limit by one line at most.
            #expect(log.files().reduce(0) { $0 + $1.bytes } <= 7_000 + 200)
        }
        let hours = log.files().map(\.hour)
        #expect(
            hours.count >= 5 && hours == hours.sorted()
                && hours.last == LogFile(at: clock.milliseconds, level: .info).hour - 3_600_000)
        clock.advance(4 * 86_400)
        log.append(level: .info, label: "l", message: "much later")
        #expect(try names().count == 1)
        clock.advance(4 * 86_400)
        #expect(try open(days: 3).files().isEmpty, "opening tidies too")
    }

    @Test("the removed files: random files against the rule, file by file", arguments: UInt64(1)...40)
    func retention(seed: UInt64) {
        var numbers = SeededNumbers(seed: seed)
        let now = clock.milliseconds
        var limits = DiagnosisLogLimits()
        (limits.fileBytes, limits.totalBytes, limits.age) = (100, 700 + numbers.below(2_000), .seconds(10 * 3_600))
        let levels = Logger.Level.allCases
        let files = Set(
            (0..<numbers.below(40)).map { _ in
                LogFile(
                    at: now + Int64(numbers.below(24) - 20) * 3_600_000, level: levels[numbers.below(levels.count)])
            }
        ).map { LogFile(at: $0.hour, level: $0.level, bytes: numbers.below(100)) }
        let doomed = limits.filesToDelete(of: files, now: now)
        let kept = files.filter { !doomed.contains($0) }
        let present = LogFile(at: now, level: .info).hour
        #expect(doomed.allSatisfy { $0.hour != present })
        #expect(kept.allSatisfy { $0.hour + 3_600_000 > now - 36_000_000 || $0.hour == present })
        #expect(kept.reduce(0) { $0 + $1.bytes } <= limits.totalBytes)
        let young = doomed.filter { $0.hour + 3_600_000 > now - 36_000_000 }
        if let last = young.last {
            #expect(
                kept.filter { $0.hour != present }.allSatisfy { ($0.hour, $0.level) > (last.hour, last.level) },
                "the oldest go first")
            #expect(kept.reduce(last.bytes) { $0 + $1.bytes } > limits.totalBytes, "no more than have to")
        }
    }

    @Test("files of future hours, from a time with a wrong clock, are removed before those of the present hour")
    func wrongClock() {
        var limits = DiagnosisLogLimits()
        (limits.fileBytes, limits.totalBytes) = (100, 700)
        let files = [0, 1, 2].flatMap { hour in
            Logger.Level.allCases.map {
                LogFile(at: clock.milliseconds + hour * LogFile.hourMilliseconds, level: $0, bytes: 100)
            }
        }
        #expect(limits.filesToDelete(of: files, now: clock.milliseconds) == Array(files.dropFirst(7)))
    }

    @Test("names of files are parsed, and other names are not") func fileNames() {
        for level in Logger.Level.allCases {
            for time: Int64 in [0, 1_800_000_000_123, -1] {
                let file = LogFile(at: time, level: level, bytes: 5)
                #expect(LogFile(name: file.name, bytes: 5) == file)
            }
        }
        for name in [
            "", ".log", "2027-01-15T08-info", "2027-01-15T08-loud.log", "2027-01-15T8-info.log",
            "2027-02-30T08-info.log",
            "2027-01-15T08:00-info.log", "x2027-01-15T08-info.log", "2027-01-15T08-info.log.gz", "-info.log",
        ] { #expect(LogFile(name: name, bytes: 0) == nil, "\(name)") }
    }

    @Test("times are written to the millisecond, rounded like numbers", arguments: UInt64(1)...20) func times(
        seed: UInt64
    ) {
        var numbers = SeededNumbers(seed: seed)
        for _ in 0..<50 {
            let time = Int64.random(in: 0..<4_000_000_000_000, using: &numbers)
            let text = DiagnosisTime.text(time)
            #expect(text.utf8.count == LogLine.timeBytes && text.hasSuffix("Z"))
            #expect(Int64(text.dropFirst(20).prefix(3)) == time % 1_000)
            #expect(DiagnosisTime.hour(text.prefix(13)) == time - time % 3_600_000)
            let other = Int64.random(in: 0..<4_000_000_000_000, using: &numbers)
            #expect((DiagnosisTime.text(other) < text) == (other < time))
        }
    }

    @Test("other files in the folder are left alone") func foreign() throws {
        try Data("x".utf8).write(to: folder.url.appendingPathComponent("notes.txt"))
        let log = try open()
        log.append(level: .info, label: "l", message: "m")
        clock.advance(30 * 86_400)
        log.append(level: .info, label: "l", message: "m")
        #expect(try names() == ["2027-02-14T08-info.log", "notes.txt"])
    }

    @Test("contradictory limits are refused") func limits() {
        #expect(throws: ClientServiceError.self) { try open(fileBytes: 1_000, totalBytes: 6_999) }
        #expect(throws: ClientServiceError.self) { try open(fileBytes: 0, totalBytes: 6_999) }
    }

    @Test("a log whose files cannot be written drops lines and continues") func unwritable() throws {
        let log = try open()
        try FileManager.default.createDirectory(
            at: folder.url.appendingPathComponent("2027-01-15T08-info.log"), withIntermediateDirectories: false)
        log.append(level: .info, label: "l", message: "lost")
        log.append(level: .error, label: "l", message: "kept")
        #expect(try text("2027-01-15T08-error.log").contains("kept"))
    }

    @Test("lines of concurrent tasks are all there, each whole") func concurrent() async throws {
        let log = try open(fileBytes: 1_000_000, totalBytes: 7_000_000)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for number in 0..<200 { log.append(level: .info, label: "t\(task)", message: "n\(number)") }
                }
            }
        }
        let lines = try text("2027-01-15T08-info.log").split(separator: "\n").map { $0.dropFirst(30) }
        #expect(Set(lines).count == 1_600 && lines.allSatisfy { $0.wholeMatch(of: /t\d: n\d+/) != nil })
    }
}
