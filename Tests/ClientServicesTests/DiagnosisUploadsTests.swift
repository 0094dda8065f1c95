import Crypto
import Foundation
import Logging
import Testing

@testable import ClientServices

@Suite("Diagnosis: collecting and uploading", .timeLimit(.minutes(2))) struct DiagnosisUploadsTests {
    private let folder: TemporaryFolder
    private let log: DiagnosisLog
    private let server = PlayedDiagnosisServer()
    private let clock = SetClock(Date(timeIntervalSince1970: 1_800_000_000))
    private let begin: Int64 = 1_800_000_000_000

    init() throws {
        folder = try TemporaryFolder()
        log = try DiagnosisLog(folder: folder.url.appendingPathComponent("logs"), now: { [clock] in clock.date })
    }

    private func open(
        partBytes: Int = 1_000, compress: (@Sendable (Data) throws -> Data)? = nil
    ) throws -> DiagnosisUploads {
        var settings = DiagnosisSettings()
        (settings.partBytes, settings.compress, settings.compressedSuffix) = (partBytes, compress, ".rev")
        return try DiagnosisUploads(
            store: ServiceStore(folder: folder.url), log: log, uploader: server, settings: settings, logger: .silent,
            now: { [clock] in clock.instant }, sleep: { [clock] in clock.advance($0 / .seconds(1)) })
    }

    /// Three hours of lines at two levels, a minute apart; the clock is at the end.
    private func fillLog() {
        clock.set(Date(timeIntervalSince1970: 1_800_000_000))
        for minute in 0..<180 {
            log.append(level: minute % 3 == 0 ? .error : .info, label: "l", message: "minute \(minute)")
            clock.advance(60)
        }
    }

    private func command(_ id: String, minutes: Range<Int64> = 0..<180, _ more: String = "") -> [UInt8] {
        let (from, to) = (begin + minutes.lowerBound * 60_000, begin + minutes.upperBound * 60_000)
        return Array(#"{"taskId":"\#(id)","from":\#(from),"to":\#(to)\#(more)}"#.utf8)
    }

    /// Runs the uploads until a task has this status.
    private func run(
        _ uploads: DiagnosisUploads, until isThere: @Sendable @escaping (DiagnosisReport) -> Bool
    ) async throws {
        let changes = uploads.changes
        if uploads.tasks.contains(where: isThere) { return }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await uploads.run() }
            group.addTask { for await report in changes where isThere(report) { return } }
            try await group.next()
            group.cancelAll()
            try await group.waitForAll()
        }
    }

    private func minutes(_ bytes: [UInt8]) -> [Int] {
        String(decoding: bytes, as: UTF8.self).split(separator: "\n").compactMap {
            $0.split(separator: " ").last.flatMap { Int($0) }
        }
    }

    private func collectedFiles() throws -> [String] {
        (try? FileManager.default.contentsOfDirectory(atPath: folder.url.path + "/diagnosis"))?.sorted() ?? []
    }

    @Test("all lines of the time are sent in numbered parts, levels mixed by time, and make the file again")
    func course() async throws {
        fillLog()
        let uploads = try open()
        uploads.networkChanged(to: .wifi)
        #expect(try uploads.take(command("t1", minutes: 30..<150)) == .applied)
        #expect(uploads.tasks.map(\.status) == [.waiting])
        try await run(uploads) { $0.status == .done }
        let first = try #require(server.parts.first)
        let file = server.file("t1", sha256: first.fileSHA256)
        #expect(minutes(file) == Array(30..<150))
        #expect(first.file == "t1-1.log" && first.run == 1 && first.fileBytes == file.count)
        #expect(SHA256.hash(data: file).map { String(format: "%02x", $0) }.joined() == first.fileSHA256)
        #expect(server.parts.map(\.number) == Array(1...first.total) && first.total == (file.count + 999) / 1_000)
        for part in server.parts {
            #expect(SHA256.hash(data: part.bytes).map { String(format: "%02x", $0) }.joined() == part.sha256)
            #expect(part.bytes.count == 1_000 || part.number == part.total)
        }
        #expect(try collectedFiles().isEmpty, "the file that was sent is removed")
    }

    @Test("only the wanted levels are collected") func levels() async throws {
        fillLog()
        let uploads = try open()
        _ = try uploads.take(command("t1", #","level":"warning","network":"any""#))
        try await run(uploads) { $0.status == .done }
        let file = server.file("t1", sha256: server.parts.first?.fileSHA256 ?? "")
        #expect(minutes(file) == (0..<180).filter { $0 % 3 == 0 })
    }

    @Test("too much data, and no data, are refused, and the server is told until it has the refusal")
    func refusals() async throws {
        fillLog()
        server.set(.fails(3))
        let uploads = try open()
        uploads.networkChanged(to: .cellular)
        _ = try uploads.take(command("big", #","limitBytes":5000,"run":4"#))
        _ = try uploads.take(command("none", minutes: 500..<600))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await uploads.run() }
            // Three calls fail, the second of them after the server has recorded it; two succeed.
            var calls = server.calls.makeAsyncIterator()
            for _ in 0..<5 { _ = await calls.next() }
            group.cancelAll()
            try await group.waitForAll()
        }
        let told = [("big", 4, DiagnosisRefusal.tooLarge), ("none", 1, .nothingThere)].map {
            PlayedDiagnosisServer.Refusal(taskID: $0, run: $1, reason: $2)
        }
        #expect(Set(server.refusals) == Set(told) && server.refusals.count == 3 && server.parts.isEmpty)
        #expect(Set(uploads.tasks.map(\.status)) == [.refused(.tooLarge), .refused(.nothingThere)])
        #expect(try collectedFiles().isEmpty)
    }

    @Test("each part is repeated until it is accepted, after any failure, and never out of order")
    func repeats() async throws {
        fillLog()
        server.set(.fails(9))
        let uploads = try open()
        _ = try uploads.take(command("t1", #","network":"any""#))
        try await run(uploads) { $0.status == .done }
        let numbers = server.parts.map(\.number)
        #expect(numbers == numbers.sorted() && Set(numbers) == Set(1...(server.parts.first?.total ?? 0)))
        #expect(numbers.count > Set(numbers).count, "some were accepted, and the answer was lost")
        #expect(minutes(server.file("t1", sha256: server.parts[0].fileSHA256)) == Array(0..<180))
    }

    @Test("a restart continues with the next part; a part with a lost answer is sent again, unchanged")
    func restart() async throws {
        fillLog()
        var uploads = try open()
        _ = try uploads.take(command("t1", #","network":"any""#))
        server.set(.takesThenHangs(2))
        var calls = server.calls.makeAsyncIterator()
        try await withThrowingTaskGroup(of: Void.self) { [uploads] group in
            group.addTask { try await uploads.run() }
            for _ in 0..<3 { _ = await calls.next() }
            group.cancelAll()
            try await group.waitForAll()
        }
        server.set(.takes)
        log.append(level: .error, label: "l", message: "logged since, and not in the bundle 999")
        uploads = try open()
        let total = try #require(server.parts.first?.total)
        #expect(uploads.tasks.map(\.status) == [.uploading(taken: 2, total: total)])
        try await run(uploads) { $0.status == .done }
        #expect(server.parts.map(\.number) == [1, 2, 3] + Array(3...total))
        #expect(server.parts[2] == server.parts[3])
        #expect(minutes(server.file("t1", sha256: server.parts[0].fileSHA256)) == Array(0..<180))
    }

    @Test("a process that ended while it collected leaves no file behind, and collects again")
    func halfCollected() async throws {
        fillLog()
        _ = try open().take(command("t1", #","network":"any""#))
        let bundles = folder.url.appendingPathComponent("diagnosis")
        try FileManager.default.createDirectory(at: bundles, withIntermediateDirectories: true)
        for name in ["t1-1.log.unfinished", "t1-1.log", "other-7.log"] {
            try Data("half".utf8).write(to: bundles.appendingPathComponent(name))
        }
        let uploads = try open()
        #expect(try collectedFiles().isEmpty)
        try await run(uploads) { $0.status == .done }
        #expect(minutes(server.file("t1", sha256: server.parts[0].fileSHA256)) == Array(0..<180))
    }

    @Test("a lost or truncated bundle is collected again, and its parts have another digest")
    func lostBundle() async throws {
        fillLog()
        var uploads = try open()
        _ = try uploads.take(command("t1", #","network":"any""#))
        try await run(uploads) { if case .uploading(taken: 2, _) = $0.status { true } else { false } }
        let file = folder.url.appendingPathComponent("diagnosis/t1-1.log")
        let bytes = try Data(contentsOf: file)
        try bytes.dropLast(10).write(to: file)
        clock.set(Date(timeIntervalSince1970: 1_800_000_000 + 60))
        log.append(level: .critical, label: "l", message: "late 1")
        uploads = try open()
        try await run(uploads) { $0.status == .done }
        let wholes = server.parts.map(\.fileSHA256)
        #expect(Set(wholes).count == 2 && wholes.first != wholes.last)
        #expect(minutes(server.file("t1", sha256: try #require(wholes.last))).count == 181)
        #expect(server.parts.filter { $0.fileSHA256 == wholes.last }.map(\.number).first == 1)
    }

    @Test("a task for Wi-Fi is sent on no other network: unknown, cellular; a part in flight is cancelled")
    func network() async throws {
        fillLog()
        let uploads = try open()
        _ = try uploads.take(command("t1"))
        for kind in [NetworkKind.unknown, .cellular, .none] {
            uploads.networkChanged(to: kind)
            try await run(uploads) { if case .waitingForNetwork(taken: 0, _) = $0.status { true } else { false } }
        }
        #expect(server.parts.isEmpty)
        server.set(.hangs)
        var calls = server.calls.makeAsyncIterator()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await uploads.run() }
            uploads.networkChanged(to: .wifi)
            _ = await calls.next()
            uploads.networkChanged(to: .cellular)
            _ = await calls.next()
            #expect(server.cancelled == 1, "cancelled without the end of run()")
            server.set(.takes)
            #expect(server.parts.isEmpty)
            let changes = uploads.changes
            uploads.networkChanged(to: .wifi)
            for await report in changes where report.status == .done { break }
            group.cancelAll()
            try await group.waitForAll()
        }
        #expect(minutes(server.file("t1", sha256: server.parts[0].fileSHA256)) == Array(0..<180))
    }

    @Test("the operator deletes a task: a part in flight is cancelled, and the collected file is removed")
    func deletion() async throws {
        fillLog()
        let uploads = try open()
        _ = try uploads.take(command("t1", #","network":"any""#))
        server.set(.hangs)
        var calls = server.calls.makeAsyncIterator()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await uploads.run() }
            _ = await calls.next()
            let files = try collectedFiles()
            let outcome = try uploads.take(Array(#"{"taskId":"t1","action":"delete"}"#.utf8))
            #expect(files == ["t1-1.log"] && outcome == .applied)
            _ = await calls.next()
            group.cancelAll()
            try await group.waitForAll()
        }
        #expect(server.cancelled == 1 && server.parts.isEmpty)
        #expect(try collectedFiles().isEmpty && open().tasks.map(\.status) == [.deleted])
    }

    @Test("a new run starts again; a task that the server no longer wants ends without a report")
    func newRun() async throws {
        fillLog()
        let uploads = try open()
        _ = try uploads.take(command("t1", #","network":"any""#))
        server.set(.refuses("the task is gone"))
        try await run(uploads) { $0.status == .refused(.byServer("the task is gone")) }
        #expect(try server.refusals.isEmpty && collectedFiles().isEmpty)
        server.set(.takes)
        #expect(try uploads.take(command("t1", #","network":"any""#)) == .known)
        #expect(try uploads.take(command("t1", #","network":"any","run":2"#)) == .applied)
        try await run(uploads) { $0.status == .done }
        #expect(server.parts.allSatisfy { $0.run == 2 && $0.file == "t1-2.log" })
    }

    @Test("a compressor gets the log hour by hour, and the limit applies to its output")
    func compressed() async throws {
        fillLog()
        // Represents a compressor whose outputs can be concatenated, like gzip: it halves, and its output is
        // recognisable.
        let uploads = try open(compress: { data in Data(data.enumerated().filter { $0.offset % 2 == 0 }.map(\.element))
        })
        let whole = log.files().reduce(0) { $0 + $1.bytes }
        _ = try uploads.take(command("t1", #","network":"any","limitBytes":\#(whole / 2 + 3)"#))
        try await run(uploads) { $0.status == .done }
        #expect(server.parts[0].file == "t1-1.log.rev" && abs(server.parts[0].fileBytes - whole / 2) <= 3)
    }

    @Test("a failing compressor causes a refusal, and the other tasks continue") func failingCompressor() async throws {
        fillLog()
        struct Failure: Error {}
        let uploads = try open(compress: { _ in throw Failure() })
        _ = try uploads.take(command("t1"))
        try await run(uploads) { $0.status == .refused(.unreadable) }
        #expect(try collectedFiles().isEmpty)
    }

    @Test("an invalid command is refused, and a known one is recognised after a restart") func outcomes() throws {
        let uploads = try open()
        guard case .refused = try uploads.take(Array("{}".utf8)) else {
            Issue.record("it was accepted")
            return
        }
        #expect(try uploads.take(command("t1")) == .applied)
        #expect(try open().take(command("t1")) == .known && open().tasks.count == 1)
    }

    @Test("at most 100 tasks have work left; a deletion is always accepted") func bound() throws {
        let uploads = try open()
        for number in 0..<100 { #expect(try uploads.take(command("t\(number)")) == .applied) }
        guard case .refused = try uploads.take(command("one more")) else {
            Issue.record("it was accepted")
            return
        }
        #expect(try uploads.take(Array(#"{"taskId":"t0","action":"delete"}"#.utf8)) == .applied)
        #expect(try uploads.take(command("t100")) == .applied)
    }

    @Test("run() works once at a time, and again after its end") func twice() async throws {
        fillLog()
        let uploads = try open()
        _ = try uploads.take(command("t1", #","network":"any""#))
        server.set(.hangs)
        var calls = server.calls.makeAsyncIterator()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await uploads.run() }
            _ = await calls.next()
            await #expect(throws: ClientServiceError.self) { try await uploads.run() }
            group.cancelAll()
            try await group.waitForAll()
        }
        server.set(.takes)
        try await run(uploads) { $0.status == .done }
    }

    @Test("commands from concurrent tasks, while it runs, are all served") func concurrent() async throws {
        fillLog()
        let uploads = try open(partBytes: 100_000)
        let server = server
        let ids = (0..<24).map { "t\($0)" }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await uploads.run() }
            let calls = server.calls
            for id in ids {
                group.addTask { [command = command(id, #","network":"any""#)] in _ = try uploads.take(command) }
            }
            for await _ in calls where Set(server.parts.map(\.taskID)).count == 24 { break }
            group.cancelAll()
            try await group.waitForAll()
        }
        try await run(uploads) { _ in uploads.tasks.allSatisfy { $0.status == .done } }
        #expect(Set(server.parts.map(\.taskID)) == Set(ids))
    }

    @Test("parts too small or too large for any server are refused") func settings() {
        #expect(throws: ClientServiceError.self) { try open(partBytes: 999) }
        #expect(throws: ClientServiceError.self) { try open(partBytes: 10_000_001) }
    }
}
