import Credentials
import Crypto
import Foundation
import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Diagnosis logs in the store", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct DiagnosisStoreTests {
    private static let app = InstanceID("app")
    private static let device = DeviceID("d1")
    private static let alice = OperationActor("console:alice", from: "127.0.0.1")
    private static let request = DiagnosisRequest(
        from: WallTime(milliseconds: 1_000), to: WallTime(milliseconds: 2_000), level: "info", network: "wifi",
        limitBytes: 100)

    private static func digest(_ bytes: [UInt8]) -> String { HexText.of(SHA256.hash(data: bytes)) }

    /// The parts of a log, with the given number of bytes each.
    private static func parts(
        _ log: [UInt8], each size: Int, task: String = "t1", run: Int = 1
    ) -> [DiagnosisStore.Part] {
        let pieces = stride(from: 0, to: log.count, by: size).map { Array(log[$0..<min($0 + size, log.count)]) }
        return pieces.enumerated().map { index, piece in
            DiagnosisStore.Part(
                taskID: task, run: run, file: "\(task)-\(run).log", fileBytes: log.count, fileSHA256: digest(log),
                number: index + 1, total: pieces.count, sha256: digest(piece), content: piece)
        }
    }

    private static func create(_ taskID: String = "t1", in database: TestDatabase) async throws -> Bool {
        try await database.runAsConsole(
            DiagnosisStore.create(taskID, of: app, for: device, request, description: "why", by: alice))
    }

    private static func store(
        _ part: DiagnosisStore.Part, from device: DeviceID = device, of instance: InstanceID = app,
        in database: TestDatabase
    ) async throws -> Int {
        try await database.runAsRelay(DiagnosisStore.store(part, of: instance, from: device, UserID("u1"))).code
    }

    private static func held(_ taskID: String = "t1", in database: TestDatabase) async throws -> DiagnosisStore.Held {
        try requireValue(
            try await database.runAsConsole(DiagnosisStore.list(of: app, taskID: taskID)).first, "no task \(taskID)")
    }

    private static func log(of held: DiagnosisStore.Held, in database: TestDatabase) async throws -> [UInt8] {
        var log: [UInt8] = []
        for number in 1...held.partCount {
            log += try requireValue(
                try await database.runAsConsole(DiagnosisStore.part(number, of: held)), "no part \(number)")
        }
        return log
    }

    /// Runs the body with a database that has an instance.
    private static func with(_ body: @Sendable (TestDatabase) async throws -> Void) async throws {
        try await TestDatabase.with(connections: 1) { databases in
            try await databases[0].configure()
            try await body(databases[0])
        }
    }

    @Test("parts in any order and with repeats make the log; every state is recorded, with its operator")
    func course() async throws {
        try await Self.with { database in
            #expect(try await Self.create(in: database))
            let asked = try await Self.held(in: database)
            #expect(asked.state == .asked && asked.run == 1 && asked.actor == "console:alice" && asked.userID == nil)
            #expect(asked.request == Self.request && asked.description == "why" && asked.deviceID == Self.device)
            let log = Array("a log of some bytes".utf8)
            let parts = Self.parts(log, each: 5)
            for part in [parts[2], parts[0], parts[0], parts[1]] {
                #expect(try await Self.store(part, in: database) == 200)
            }
            let coming = try await Self.held(in: database)
            #expect(coming.state == .coming && coming.takenParts == 3 && coming.partCount == 4)
            #expect(coming.userID == UserID("u1") && coming.file == "t1-1.log" && coming.takenBytes == 15)
            #expect(try await database.runAsConsole(DiagnosisStore.part(1, of: coming)) == nil, "it is not whole")
            let early = DiagnosisStore.recordDownload("t1", of: Self.app, by: Self.alice)
            #expect(try await !database.runAsConsole(early))
            #expect(try await Self.store(parts[3], in: database) == 200)
            #expect(try await Self.store(parts[3], in: database) == 200, "a repeat after the end")
            let whole = try await Self.held(in: database)
            #expect(whole.state == .whole && whole.takenBytes == log.count)
            #expect(try await Self.log(of: whole, in: database) == log)
            #expect(try await database.runAsConsole(DiagnosisStore.recordDownload("t1", of: Self.app, by: Self.alice)))
            #expect(try await database.runAsConsole(DiagnosisStore.delete("t1", of: Self.app, by: Self.alice)))
            #expect(try await !database.runAsConsole(DiagnosisStore.delete("t1", of: Self.app, by: Self.alice)))
            #expect(try await database.rows("SELECT number::text FROM diagnosis_part", columns: 1).isEmpty)
            let actions = try await database.rows(
                "SELECT action::text FROM operation_record WHERE subject = 't1' ORDER BY number", columns: 1)
            #expect(actions.map { $0[0] } == ["80", "83", "82"])
        }
    }

    @Test("a part of an unknown task, another device, instance or run is refused, and changes nothing")
    func strangers() async throws {
        try await Self.with { database in
            _ = try await Self.create(in: database)
            let part = Self.parts(Array("abc".utf8), each: 2)[0]
            #expect(try await Self.store(part, from: DeviceID("d2"), in: database) == 404)
            #expect(try await Self.store(part, of: InstanceID("other"), in: database) == 404)
            #expect(try await Self.store(Self.parts([1], each: 1, task: "none")[0], in: database) == 404)
            #expect(try await Self.store(Self.parts([1], each: 1, run: 2)[0], in: database) == 409)
            for (device, run) in [(DeviceID("d2"), 1), (Self.device, 2)] {
                try await database.runAsRelay(
                    DiagnosisStore.refuse(
                        "t1", run: run, reason: "nothing-there", of: Self.app, from: device, UserID("u")))
            }
            #expect(try await Self.held(in: database).state == .asked)
            #expect(try await database.runAsConsole(DiagnosisStore.list(of: InstanceID("other"))).isEmpty)
        }
    }

    @Test("a file with another SHA-256 starts again; a restart makes the next run, and refuses parts of the former")
    func startingOver() async throws {
        try await Self.with { database in
            _ = try await Self.create(in: database)
            let (first, second) = (Array("first log".utf8), Array("the second".utf8))
            #expect(try await Self.store(Self.parts(first, each: 4)[0], in: database) == 200)
            for part in Self.parts(second, each: 4) { #expect(try await Self.store(part, in: database) == 200) }
            let whole = try await Self.held(in: database)
            #expect(try await Self.log(of: whole, in: database) == second)
            let query = DiagnosisStore.restart("t1", of: Self.app, by: Self.alice)
            let restarted = try #require(try await database.runAsConsole(query))
            #expect(restarted.run == 2 && restarted.state == .asked && restarted.file.isEmpty)
            #expect(try await database.runAsConsole(DiagnosisStore.part(1, of: whole)) == nil)
            #expect(try await Self.store(Self.parts(second, each: 4)[0], in: database) == 409)
            for part in Self.parts(first, each: 4, run: 2) {
                #expect(try await Self.store(part, in: database) == 200)
            }
            #expect(try await Self.log(of: try await Self.held(in: database), in: database) == first)
            let none = DiagnosisStore.restart("none", of: Self.app, by: Self.alice)
            #expect(try await database.runAsConsole(none) == nil)
        }
    }

    @Test("a file that is too large or damaged ends the run, and later parts get that answer")
    func refusals() async throws {
        try await Self.with { database in
            let log = Array("a log of some bytes".utf8)
            var wrongPart = Self.parts(log, each: 5, task: "part")[0]
            wrongPart.content[0] ^= 1
            var wrongWhole = Self.parts(log, each: 50, task: "whole")[0]
            wrongWhole.fileSHA256 = Self.digest([1])
            var longer = Self.parts(log, each: 50, task: "longer")[0]
            longer.fileBytes = 18
            let large = Self.parts(Array(repeating: 7, count: 101), each: 50, task: "large")[0]
            for (part, code) in [(wrongPart, 422), (wrongWhole, 422), (longer, 422), (large, 413)] {
                _ = try await Self.create(part.taskID, in: database)
                #expect(try await Self.store(part, in: database) == code, "\(part.taskID)")
                let held = try await Self.held(part.taskID, in: database)
                #expect(held.state == .refused && held.refusal == (code == 413 ? "too-large" : "damaged"))
                let right = Self.parts([1, 2], each: 2, task: part.taskID)[0]
                #expect(try await Self.store(right, in: database) == 409, "the run has ended")
            }
            _ = try await Self.create("other", in: database)
            var parts = Self.parts(log, each: 5, task: "other")
            #expect(try await Self.store(parts[0], in: database) == 200)
            parts[1].total = 9
            #expect(try await Self.store(parts[1], in: database) == 422, "parts of one file say the same of it")
        }
    }

    @Test("the device's refusal is recorded, and its repeats too; its earlier parts are removed")
    func deviceRefuses() async throws {
        try await Self.with { database in
            _ = try await Self.create(in: database)
            let parts = Self.parts(Array("abcd".utf8), each: 2)
            #expect(try await Self.store(parts[0], in: database) == 200)
            for reason in ["unreadable", "nothing-there"] {
                try await database.runAsRelay(
                    DiagnosisStore.refuse(
                        "t1", run: 1, reason: reason, of: Self.app, from: Self.device, UserID("u1")))
            }
            let held = try await Self.held(in: database)
            #expect(held.state == .refused && held.refusal == "unreadable" && held.takenParts == 0)
            #expect(try await database.rows("SELECT number::text FROM diagnosis_part", columns: 1).isEmpty)
        }
    }

    @Test("an instance has at most 100 tasks; tasks without a change for 30 days are removed")
    func bounds() async throws {
        try await Self.with { database in
            for number in 1...Limits.diagnosisTasks {
                #expect(try await Self.create("t\(number)", in: database))
            }
            #expect(try await !Self.create("more", in: database))
            let newest = try await database.runAsConsole(DiagnosisStore.list(of: Self.app)).map(\.taskID)
            #expect(newest.count == Limits.diagnosisTasks && newest.first == "t100")
            #expect(try await Self.store(Self.parts([1], each: 1, task: "t7")[0], in: database) == 200)
            #expect(try await database.runAsRelay(DiagnosisStore.forget(most: 10)) == 0)
            try await database.execute(
                "UPDATE diagnosis_task SET changed_at = now() - interval '31 days' WHERE task_id IN ('t7', 't8')")
            #expect(try await database.runAsRelay(DiagnosisStore.forget(most: 1)) == 1)
            #expect(try await database.runAsRelay(DiagnosisStore.forget(most: 10)) == 1)
            #expect(try await database.rows("SELECT number::text FROM diagnosis_part", columns: 1).isEmpty)
            #expect(try await Self.create("more", in: database))
        }
    }
}
