import Foundation
import Logging
import PostgreSQL
import ServiceKit
import SyncModel
import SyncStore
import TestSupport
import Testing

@testable import Console

@Suite("Sign-in at the console", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct ConsoleSignInTests {
    private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
    private static let password = "correct horse battery"

    /// Runs the body with a console's database that has the account alice.
    private static func with(
        limit: Duration = .seconds(4), workerCount: Int = 4,
        _ body: @escaping @Sendable (Database, SignIn, TestDatabase) async throws -> Void
    ) async throws {
        try await TestDatabase.with(connections: 1) { databases in
            // A separate login for the console: a process refuses any other.
            let login = "console_\(UUID().uuidString.replacing("-", with: "").lowercased())"
            try await databases[0].execute("CREATE ROLE \(login) LOGIN IN ROLE mss_console")
            let database = Database(
                configuration: PostgresConfiguration(
                    host: "127.0.0.1", port: TestDatabase.port ?? 0, database: databases[0].database, user: login),
                health: HealthState(), logger: logger, workerCount: workerCount, limit: limit)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await database.run() }
                let key = Data(repeating: 7, count: 32).base64EncodedString()
                let signIn = SignIn(
                    database: database, records: AuditRecorder(database: database), seal: SecondFactorSeal(text: key))
                let account = ConsoleAccount(name: "alice", grants: [ConsoleAccount.everyInstance: .administrator])
                _ = try await databases[0].runAsConsole(AccountStore.create(account, invitation: [1], by: "test"))
                let hash = try await signIn.hash(password, of: "alice", from: "192.0.2.1")
                _ = try await databases[0].runAsConsole(
                    AccountStore.setPassword(hash, of: "alice", sparing: [], by: "test"))
                try await body(database, signIn, databases[0])
                group.cancelAll()
                // Cancels the console's tasks, which closes its connections: otherwise the database could not be
                // dropped.
                try? await group.waitForAll()
            }
            try await databases[0].execute("DROP ROLE \(login)")
        }
    }

    private static func fault(_ body: () async throws(ConsoleFault) -> Void) async -> ConsoleFault? {
        do throws(ConsoleFault) {
            try await body()
            return nil
        } catch {
            return error
        }
    }

    private static func principal(from source: String = "192.0.2.1") -> RequestPrincipal {
        RequestPrincipal(
            account: ConsoleAccount(name: "alice", grants: [:]), token: SessionToken(), proof: .cookie,
            isConfirmed: false, source: source)
    }

    private static func actions(_ database: TestDatabase) async throws -> [OperationAction?] {
        try await database.runAsConsole(RecordStore.oldest(RecordFilter(actor: "console:alice"), after: 0, limit: 200))
            .records.map(\.action)
    }

    @Test("SEC14: a wrong, unknown, impossible or waiting name gets one answer; the right one signs in elsewhere")
    func answers() async throws {
        try await Self.with { _, signIn, database in
            func answer(_ name: String, _ password: String, from source: String = "192.0.2.9") async -> ConsoleFault? {
                await Self.fault { () throws(ConsoleFault) in
                    try await signIn.check(name, password, code: nil, from: source)
                }
            }
            #expect(await answer("alice", Self.password) == nil)
            for name in ["nobody", "a\0b", "", String(repeating: "x", count: 5_000), "'; --"] {
                #expect(await answer(name, Self.password) == .signInFailed)
            }
            for _ in 0..<5 { #expect(await answer("alice", "wrong") == .signInFailed) }
            try await database.execute("UPDATE console_try SET locked_until = locked_until + interval '1 hour'")
            #expect(await answer("alice", Self.password) == .signInFailed, "it has to wait, and gets no details")
            #expect(await answer("alice", Self.password, from: "192.0.2.1") == nil, "its owner signs in from elsewhere")
            let failed = try await Self.actions(database).filter { $0 == .failedSignIn }
            #expect(failed.count == 5)
        }
    }

    @Test("SEC14: a signed-in user with a wrong password gets an error, then a wait; each attempt is recorded")
    func confirmations() async throws {
        try await Self.with { _, signIn, database in
            func answer(_ password: String) async -> ConsoleFault? {
                await Self.fault { () throws(ConsoleFault) in
                    try await signIn.confirm(password, of: Self.principal(), field: "password")
                }
            }
            for _ in 0..<5 { #expect(await answer("wrong") == .wrong("password", "fault.passwordWrong")) }
            try await database.execute(
                "UPDATE console_try SET locked_until = clock_timestamp() + interval '99 seconds'")
            let refused = await answer(Self.password)
            #expect(refused?.code == "TOO_MANY_TRIES" && refused?.status == 429 && refused?.field == "password")
            #expect((90...99).contains(refused?.retryAfter ?? 0))
            #expect(try await Self.actions(database) == Array(repeating: .failedConfirmation, count: 5))
            try await database.execute("UPDATE console_try SET locked_until = clock_timestamp()")
            #expect(await answer(Self.password) == nil)
        }
    }

    @Test("SEC14: a second factor is replaced and removed only with its code, each code once, the first one too")
    func secondFactors() async throws {
        try await Self.with { _, signIn, database in
            let secret = [UInt8](repeating: 3, count: 20)
            let step = WallTime.now.milliseconds / 30_000
            let first = TimeCode.code(secret, step: step)
            let (sealed, used) = try signIn.sealed(secret, code: first, of: "alice")
            _ = try await database.runAsConsole(
                AccountStore.setSecondFactor(sealed, step: used, of: "alice", by: "test"))
            func confirm(_ code: String?) async -> ConsoleFault? {
                await Self.fault { () throws(ConsoleFault) in
                    try await signIn.confirmCode(code, of: Self.principal(), field: "code")
                }
            }
            #expect(await confirm(nil) == .wrong("code", "fault.currentCode"))
            #expect(await confirm(first) == .wrong("code", "fault.codeWrong"), "it was used to set it")
            let answer = await Self.fault { () throws(ConsoleFault) in
                try await signIn.check("alice", Self.password, code: first, from: "192.0.2.1")
            }
            #expect(answer == .signInFailed)
            #expect(await confirm(TimeCode.code(secret, step: used + 1)) == nil)
            #expect(try await Self.actions(database) == [.failedConfirmation, .failedSignIn])
        }
    }

    @Test("requests that wait for a silent database all end after one limit, not one after the other")
    func bounded() async throws {
        try await Self.with(limit: .milliseconds(800), workerCount: 1) { database, _, _ in
            let faults = await withTaskGroup(of: ConsoleFault?.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        await Self.fault { () throws(ConsoleFault) in
                            try await database.run(Query(PostgresStatement("SELECT pg_sleep(60)")) { _ in })
                        }
                    }
                }
                return await group.reduce(into: [ConsoleFault?]()) { $0.append($1) }
            }
            #expect(faults.allSatisfy { $0?.status == 503 && $0?.retryAfter != nil })
            // In sequence, each of them would have been tried.
            #expect(faults.count { $0 == .databaseAway } <= 3, "\(faults.count { $0 == .databaseAway })")
        }
    }
}
