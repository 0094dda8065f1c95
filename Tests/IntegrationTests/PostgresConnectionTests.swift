import PostgreSQL
import TestSupport
import Testing

@Suite("PostgreSQL driver", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct PostgresConnectionTests {
    @Test("every type survives the way to the server and back, empty and null included") func types() async throws {
        try await TestDatabase.with(connections: 1, isMigrated: false) { databases in
            let statement = PostgresStatement(
                "SELECT $1::text, $2::bytea, $3::bigint, $4::bool, $5::smallint, $6::text, $7::text[]::text",
                [
                    .text("héllo 🙂"), .bytes([0, 255, 7]), .int64(.min), .bool(true), .int16(-3), .null,
                    .textArray(["a,b", nil, "\"", ""]),
                ])
            let rows = try await databases[0].run([statement])[0].get()
            let row = try #require(rows.first)
            #expect(row.text(0) == "héllo 🙂" && row.bytes(1) == [0, 255, 7] && row.int64(2) == .min)
            #expect(row.bool(3) && row.int16(4) == -3 && row.isNull(5))
            #expect(row.text(6) == #"{"a,b",NULL,"\"",""}"#)
            let empty = PostgresStatement("SELECT $1::bytea, $2::text", [.bytes([]), .text("")])
            let none = try #require(try await databases[0].run([empty])[0].get().first)
            #expect(!none.isNull(0) && none.bytes(0) == [] && none.text(1) == "")
        }
    }

    @Test("statements of one round trip are transactions of their own: one that fails leaves the others")
    func pipeline() async throws {
        try await TestDatabase.with(connections: 1, isMigrated: false) { databases in
            let insert = "INSERT INTO presence_probe VALUES ($1)"
            try await databases[0].execute("CREATE TABLE presence_probe (id bigint PRIMARY KEY)")
            let results = try await databases[0].run([1, 1, 2].map { PostgresStatement(insert, [.int64($0)]) })
            let error = await refusal { _ = try results[1].get() }
            #expect(error?.code == .server(sqlState: "23505") && error?.mayRetry == false)
            #expect(
                try await databases[0].rows("SELECT id::text FROM presence_probe ORDER BY 1", columns: 1).count == 2)
        }
    }

    @Test("a result that came with a warning counts as unknown, and the next one does not")
    func warnings() async throws {
        try await TestDatabase.with(connections: 1, isMigrated: false) { databases in
            try await databases[0].execute(
                """
                CREATE FUNCTION warn() RETURNS bigint LANGUAGE plpgsql AS
                $$ BEGIN RAISE WARNING 'canceling wait for synchronous replication'; RETURN 1; END $$
                """)
            let results = try await databases[0].run([
                PostgresStatement("SELECT warn()"), PostgresStatement("SELECT 1::bigint"),
            ])
            guard case .failure(let error) = results[0] else {
                Issue.record("the warning was not noticed")
                return
            }
            #expect(error.code == .outcomeUnknown && error.message.contains("synchronous replication"))
            #expect(try results[1].get().first?.int64(0) == 1)
        }
    }

    @Test("a call ends at its limit with an unknown outcome, and the next call has a new connection")
    func deadlines() async throws {
        try await TestDatabase.with(connections: 1, isMigrated: false) { databases in
            // Connected, so that the limit is the statement's.
            _ = try await databases[0].rows("SELECT 'here'", columns: 1)
            let error = await refusal {
                try await databases[0].run([PostgresStatement("SELECT pg_sleep(30)")], within: .seconds(1))
            }
            #expect(error?.code == .outcomeUnknown)
            let rows = try await databases[0].rows("SELECT 'again'", columns: 1)
            #expect(rows == [["again"]])
        }
    }

    @Test("a connection that the server ended while nobody looked is made anew without an error")
    func staleness() async throws {
        try await TestDatabase.with(connections: 2, isMigrated: false) { databases in
            let pid = try await databases[0].rows("SELECT pg_backend_pid()::text", columns: 1)[0][0] ?? ""
            let ended = "SELECT pg_terminate_backend(\(pid), 5000)::text"
            #expect(try await databases[1].rows(ended, columns: 1) == [["true"]])
            #expect(try await databases[0].rows("SELECT 'alive'", columns: 1) == [["alive"]])
        }
    }

    @Test("a server that is not there is unavailable, not unknown: nothing was sent") func unavailable() async throws {
        let error = await refusal {
            try await TestDatabase("no_such_database").run([PostgresStatement("SELECT 1")])
        }
        #expect(error?.code == .unavailable && error?.mayRetry == true)
    }
}
