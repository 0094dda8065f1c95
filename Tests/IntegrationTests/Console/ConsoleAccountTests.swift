import Credentials
import Crypto
import Foundation
import PostgreSQL
import SyncModel
import SyncStore
import TestSupport
import Testing

@Suite("Accounts of the console", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct ConsoleAccountTests {
    private static let root = OperationActor("console:root", from: "192.0.2.1")
    private static let alice = ConsoleAccount(name: "alice", grants: [InstanceID("a_b"): .operations])

    private static func digest(_ text: String) -> [UInt8] { Array(SHA256.hash(data: Array(text.utf8))) }

    private static func records(_ database: TestDatabase) async throws -> [OperationRecord] {
        try await database.runAsConsole(RecordStore.oldest(after: 0, limit: 200)).records
    }

    // MARK: Changes and their records

    private static func changes(_ database: TestDatabase) -> [(what: String, OperationAction, Query<Bool>)] {
        var modified = alice
        modified.grants = [ConsoleAccount.everyInstance: .administrator]
        modified.revision = 1
        return [
            ("invite", .inviteUser, AccountStore.invite("alice", digest: digest("2"), by: root)),
            ("modify", .modifyUser, AccountStore.modify(modified, by: root)),
            (
                "password", .changePassword,
                AccountStore.setPassword("hash", of: "alice", sparing: [], by: root)
            ),
            (
                "second factor", .modifyUser,
                AccountStore.setSecondFactor([1, 2], step: 7, of: "alice", by: root)
            ),
            ("no second factor", .modifyUser, AccountStore.setSecondFactor([], step: 0, of: "alice", by: root)),
            ("remove", .removeUser, AccountStore.remove("alice", by: root)),
        ]
    }

    @Test("SEC15, C9: an account and its audit record, with the source, are written together or not at all")
    func recorded() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let create = AccountStore.create(Self.alice, invitation: Self.digest("1"), by: Self.root)
            #expect(try await database.runAsConsole(create))
            #expect(try await !database.runAsConsole(create), "the name is in use")
            #expect(try await Self.records(database).map(\.action) == [.createUser, .inviteUser])
            for (what, action, change) in Self.changes(database) {
                let before = try await Self.contents(database)
                // Without the head of the chain, no record can be written.
                try await database.execute("ALTER TABLE record_head RENAME TO away")
                #expect(await refusal { try await database.runAsConsole(change) } != nil, "\(what)")
                try await database.execute("ALTER TABLE away RENAME TO record_head")
                #expect(try await Self.contents(database) == before, "\(what)")
                #expect(try await database.runAsConsole(change), "\(what)")
                let last = try #require(try await Self.records(database).last)
                #expect(last.action == action && last.subject == "alice", "\(what)")
                #expect(last.actor == "console:root" && last.source == "192.0.2.1", "\(what)")
            }
            for (what, _, change) in Self.changes(database) {
                #expect(try await !database.runAsConsole(change), "\(what): there is no such account")
            }
            #expect(try await Self.records(database).count == 8)
        }
    }

    /// The content of all account tables, as text.
    private static func contents(_ database: TestDatabase) async throws -> [[String?]] {
        try await database.rows(
            """
            SELECT query_to_xml('SELECT * FROM console_account', true, false, '')::text,
                query_to_xml('SELECT * FROM console_grant', true, false, '')::text,
                query_to_xml('SELECT * FROM console_invitation', true, false, '')::text
            """, columns: 3)
    }

    @Test("SEC14, C9: a change of the second factor is recorded before and after, and uses up its code")
    func secondFactor() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            _ = try await database.runAsConsole(
                AccountStore.create(Self.alice, invitation: Self.digest("1"), by: Self.root))
            _ = try await database.runAsConsole(
                AccountStore.setSecondFactor([1, 2], step: 7, of: "alice", by: Self.root))
            let record = try #require(try await Self.records(database).last)
            #expect(record.before?.contains(#""secondFactor": false"#) == true)
            #expect(record.after?.contains(#""secondFactor": true"#) == true)
            #expect(record.after?.contains(#""a_b": "operator""#) == true)
            for (step, isNew) in [(6, false), (7, false), (8, true), (8, false)] as [(Int64, Bool)] {
                #expect(try await database.runAsConsole(AccountStore.useCode(step: step, of: "alice")) == isNew)
            }
        }
    }

    @Test("SEC14: an invitation is valid once, for its own account, and its use is recorded")
    func invitations() async throws {
        try await TestDatabase.with(connections: 2) { databases in
            let database = databases[0]
            let first = AccountStore.inviteAdministrator(digest: Self.digest("1"), by: "mssctl:root")
            #expect(await refusal { try await database.runAsConsole(first) } != nil, "for the database's owner alone")
            try await database.execute(
                "SELECT invite_administrator('{mssctl:root,here}', '\\x\(HexText.of(Self.digest("1")))')")
            #expect(try await database.runAsConsole(AccountStore.administratorInvitedUntil) != nil)
            func use(_ token: String, _ name: String, on database: TestDatabase) async throws -> Bool {
                try await database.runAsConsole(
                    AccountStore.use(invitation: Self.digest(token), for: name, hash: "h", from: "192.0.2.2"))
            }
            async let one = use("1", "root", on: databases[0])
            async let other = use("1", "evil", on: databases[1])
            let used = try await [one, other]
            #expect(used.sorted { !$0 && $1 } == [false, true])
            #expect(try await database.rows("SELECT count(*)::text FROM console_account", columns: 1) == [["1"]])
            #expect(
                try await Self.records(database).map(\.action) == [.inviteUser, .createUser, .changePassword])
            #expect(try await Self.records(database).last?.source == "192.0.2.2")
            #expect(try await database.runAsConsole(AccountStore.administratorInvitedUntil) == nil)

            _ = try await database.runAsConsole(
                AccountStore.create(Self.alice, invitation: Self.digest("2"), by: Self.root))
            #expect(try await !use("2", "root", on: database), "it is alice's")
            #expect(try await use("2", "alice", on: database))
            #expect(try await !use("2", "alice", on: database))
        }
    }

    // MARK: Tries

    private static func claim(
        _ database: TestDatabase, _ name: String = "alice", from source: String
    ) async throws -> Bool {
        try await database.runAsConsole(AccountStore.claimTry(at: name, from: source)) == .zero
    }

    @Test("SEC14: concurrent guesses count one by one: five are checked, for existing and unknown names")
    func parallel() async throws {
        try await TestDatabase.with(connections: 4) { databases in
            for name in ["alice", "nobody"] {
                let taken = try await withThrowingTaskGroup(of: Int.self) { group in
                    for database in databases {
                        group.addTask {
                            var taken = 0
                            for _ in 0..<10 { taken += try await Self.claim(database, name, from: "s") ? 1 : 0 }
                            return taken
                        }
                    }
                    return try await group.reduce(0, +)
                }
                // The first wait is one second: on a slow machine it can end during the test.
                #expect((5...7).contains(taken), "\(name)")
            }
        }
    }

    @Test(
        "SEC14: an attacker's guesses lock out the attacker's source, never a user with a session from another source")
    func strangers() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            #expect(try await Self.claim(database, from: "home"))
            try await database.runAsConsole(AccountStore.forgiveTry(at: "alice", from: "home", isKnown: true))
            for source in 0..<10 {
                for _ in 0..<5 { #expect(try await Self.claim(database, from: "stranger\(source)")) }
                // Extends the waits, so that none ends during the test.
                try await database.execute("UPDATE console_try SET locked_until = locked_until + interval '1 hour'")
                #expect(try await !Self.claim(database, from: "stranger\(source)"))
            }
            #expect(try await !Self.claim(database, from: "another"), "fifty of all sources together")
            #expect(try await Self.claim(database, "bob", from: "another"), "at another name")
            #expect(try await Self.claim(database, from: "home"), "its owner")
            for _ in 0..<4 { _ = try await Self.claim(database, from: "home") }
            try await database.execute("UPDATE console_try SET locked_until = locked_until + interval '1 hour'")
            #expect(try await !Self.claim(database, from: "home"), "has five tries too")
        }
    }

    @Test(
        "SEC14: one source may try fifty names once each; then it waits at every name except where its owner signed in")
    func manyNames() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            #expect(try await Self.claim(database, from: "office"))
            try await database.runAsConsole(AccountStore.forgiveTry(at: "alice", from: "office", isKnown: true))
            for name in 0..<50 { #expect(try await Self.claim(database, "name\(name)", from: "office"), "\(name)") }
            try await database.execute("UPDATE console_try SET locked_until = locked_until + interval '1 hour'")
            #expect(try await !Self.claim(database, "one-more", from: "office"))
            #expect(try await Self.claim(database, "one-more", from: "elsewhere"))
            #expect(try await Self.claim(database, from: "office"), "a user who has signed in from there before")
        }
    }

    @Test("SEC14: a right password ends the count; the wait doubles up to a quarter of an hour; old rows are removed")
    func waits() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            for _ in 0..<3 {
                for _ in 0..<4 { #expect(try await Self.claim(database, from: "s")) }
                try await database.runAsConsole(AccountStore.forgiveTry(at: "alice", from: "s", isKnown: true))
            }
            // A right password without its code returns only its own attempt.
            for _ in 0..<4 { #expect(try await Self.claim(database, from: "s")) }
            for _ in 0..<3 {
                #expect(try await Self.claim(database, from: "s"))
                try await database.runAsConsole(AccountStore.forgiveTry(at: "alice", from: "s", isKnown: false))
            }
            var seconds: [String?] = []
            for _ in 0..<13 {
                #expect(try await Self.claim(database, from: "s"))
                seconds += try await database.rows(
                    """
                    SELECT round(extract(epoch FROM locked_until - tried_at))::text FROM console_try
                    WHERE account_name = 'alice' AND source = 's'
                    """, columns: 1)[0]
                try await database.execute("UPDATE console_try SET locked_until = clock_timestamp()")
            }
            #expect(
                seconds.compactMap { $0 } == [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900].map { "\($0)" })
            try await database.execute(
                "UPDATE console_try SET tried_at = tried_at - interval '2 hours', known_until = NULL")
            #expect(try await Self.claim(database, "bob", from: "s"))
            #expect(
                try await database.rows("SELECT DISTINCT account_name FROM console_try ORDER BY 1", columns: 1)
                    == [[""], ["bob"]])
        }
    }
}
