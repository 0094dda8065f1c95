import ConnectionThread
import Glibc
import Logging
import TestSupport
import Testing

@testable import PostgreSQL

@Suite("PostgreSQL driver", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct PostgresConnectionTests {
    @Test("every type is the same after the way to the server and back, with empty and null values")
    func types() async throws {
        try await TestDatabase.with(connections: 1, isMigrated: false) { databases in
            let statement = PostgresStatement(
                """
                SELECT $1::text, $2::bytea, $3::bigint, $4::bool, $5::smallint, $6::text, $7::text[]::text, $8::integer,
                    'n'::name, 'v'::varchar, $9::bytea, $10::text
                """,
                [
                    .text("héllo 🙂"), .bytes([0, 255, 7]), .int64(.min), .bool(true), .int16(-3), .null,
                    .textArray(["a,b", nil, "\"", ""]), .int32(-70_000), .bytes([]), .text(""),
                ])
            try await Self.expectRow(of: statement, on: databases[0]) { columns throws(PostgresError) in
                #expect(try columns.next() == "héllo 🙂")
                #expect(try columns.next() == [0, 255, 7] as [UInt8])
                #expect(try columns.next() == Int64.min)
                #expect(try columns.next() == true)
                #expect(try columns.next() == -3 as Int16)
                #expect(columns.isNextNull)
                #expect(try columns.next(String?.self) == nil)
                #expect(try columns.next() == #"{"a,b",NULL,"\"",""}"#)
                #expect(try columns.next() == -70_000 as Int32)
                #expect(try columns.next(String?.self) == "n")
                #expect(try columns.next() == "v")
                #expect(!columns.isNextNull)
                #expect(try columns.next() == [] as [UInt8])
                #expect(try columns.next() == "")
            }
            let numbers = PostgresStatement("SELECT (-2)::smallint, (-70000)::integer, -5000000000")
            try await Self.expectRow(of: numbers, on: databases[0]) { columns throws(PostgresError) in
                let numbers = try [columns.next(Int.self), columns.next(), columns.next()]
                #expect(numbers == [-2, -70_000, -5_000_000_000])
            }
        }
    }

    private static func expectRow(
        of statement: PostgresStatement, on database: TestDatabase,
        _ row: (inout PostgresColumns) throws(PostgresError) -> Void
    ) async throws {
        let rows = try await database.run([statement])[0].get()
        #expect(rows.count == 1 && !rows.isEmpty)
        try rows.forEachRow(row)
    }

    @Test("of several servers a connection takes one that accepts writes, and passes over one that is not there")
    func servers() async throws {
        try await TestDatabase.with(connections: 1, isMigrated: false) { databases in
            let database = databases[0]
            let dead = ServerAddress(host: "127.0.0.1", port: 1)
            let server = ServerAddress(host: "127.0.0.1", port: TestDatabase.port ?? 0)
            func connect() throws {
                let connection = PostgresConnection(
                    configuration: PostgresConfiguration(
                        addresses: [dead, server], database: database.database, user: "mss"),
                    logger: Logger(label: "test"))
                defer { connection.close() }
                for _ in 0..<2 {
                    _ = try connection.run(PostgresStatement("SELECT 1"), within: .seconds(10))
                    connection.close()
                }
            }
            try connect()
            // As a standby answers.
            try await database.execute("ALTER DATABASE \(database.database) SET default_transaction_read_only = on")
            #expect(throws: PostgresError.self) { try connect() }
        }
    }

    @Test("a server that does not answer the handshake delays a connection to the next one by about a second (F26)")
    func silentServer() async throws {
        try await TestDatabase.with(connections: 1, isMigrated: false) { databases in
            let silent = try SilentPort()
            defer { silent.close() }
            let server = ServerAddress(host: "127.0.0.1", port: TestDatabase.port ?? 0)
            func connection(_ addresses: [ServerAddress]) -> PostgresConnection {
                PostgresConnection(
                    configuration: PostgresConfiguration(
                        addresses: addresses, database: databases[0].database, user: "mss"),
                    logger: Logger(label: "test"))
            }
            let lasting = connection([silent.address, server])
            defer { lasting.close() }
            _ = try lasting.run(PostgresStatement("SELECT 1"), within: .seconds(4))
            lasting.close()
            let begun = ContinuousClock.now
            _ = try lasting.run(PostgresStatement("SELECT 1"), within: .seconds(4))
            #expect(.now - begun < .seconds(1), "the next connection begins with the server that had answered")

            let error = #expect(throws: PostgresError.self) {
                let nothing = connection([silent.address, ServerAddress(host: "127.0.0.1", port: 1)])
                _ = try nothing.run(PostgresStatement("SELECT 1"), within: .seconds(4))
            }
            let message = error?.message ?? ""
            #expect(message.contains("\(silent.address): no connection in time"))
            #expect(message.contains("127.0.0.1:1: the server is not reached"))
            // A name or a balancer is the only address, and has all of the time.
            let alone = #expect(throws: PostgresError.self) {
                _ = try connection([silent.address]).run(PostgresStatement("SELECT 1"), within: .milliseconds(1_500))
            }
            #expect(alone?.code == .unavailable)
        }
    }

    @Test("rows are decoded in their order; a row that the caller leaves out need not be decoded to its end")
    func rows() async throws {
        try await TestDatabase.with(connections: 1, isMigrated: false) { databases in
            let sql = "SELECT n, 'x' || n FROM generate_series(1, 3) n WHERE n > $1"
            let rows = try await databases[0].run([PostgresStatement(sql, [.int32(0)])])[0].get()
            let all = try rows.decode { columns throws(PostgresError) in
                "\(try columns.next(Int.self)) \(try columns.next(String.self))"
            }
            #expect(all == ["1 x1", "2 x2", "3 x3"])
            let odd = try rows.compactDecode { columns throws(PostgresError) -> String? in
                guard try !columns.next(Int.self).isMultiple(of: 2) else { return nil }
                return try columns.next()
            }
            #expect(odd == ["x1", "x3"])
            let first = try rows.first { columns throws(PostgresError) in
                let number = try columns.next(Int32.self)
                columns.skipRest()
                return number
            }
            #expect(first == 1)
            let none = try await databases[0].run([PostgresStatement(sql, [.int32(3)])])[0].get()
            #expect(none.isEmpty)
            #expect(try none.first(Int32.self) == nil)
            #expect(try none.decode(Int32.self) == [])
        }
    }

    @Test("a missing or surplus column, a null and another type are errors that name the column")
    func mismatches() async throws {
        try await TestDatabase.with(connections: 1, isMigrated: false) { databases in
            let sql = "SELECT 1::bigint AS id, NULL::text AS name, '1 day'::interval AS age"
            let rows = try await databases[0].run([PostgresStatement(sql)])[0].get()
            func error(_ row: (inout PostgresColumns) throws(PostgresError) -> Void) -> PostgresError? {
                do throws(PostgresError) {
                    try rows.forEachRow(row)
                    return nil
                } catch {
                    return error
                }
            }
            let wrong = error { columns throws(PostgresError) in _ = try columns.next(Int32.self) }
            #expect(wrong?.message == "column 1 (id) is bigint, and integer is expected")
            #expect(wrong?.code == .misuse && wrong?.mayRetry == false)
            let unknown = error { columns throws(PostgresError) in
                _ = try (columns.next(Int.self), columns.next(String?.self), columns.next(Int?.self))
            }
            #expect(
                unknown?.message == "column 3 (age) is of type 1186, and smallint, integer or bigint is expected")
            let null = error { columns throws(PostgresError) in
                _ = try (columns.next(Int.self), columns.next(String.self))
            }
            #expect(null?.message == "column 2 (name) is null, and text is expected")
            let surplus = error { columns throws(PostgresError) in _ = try columns.next(Int64.self) }
            #expect(surplus?.message == "the result has 3 columns, and 1 is decoded")
            let missing = error { columns throws(PostgresError) in
                columns.skipRest()
                _ = try columns.next(Bool?.self)
            }
            #expect(missing?.message == "the result has 3 columns, and more are decoded")
        }
    }

    @Test("statements of one round trip are separate transactions: one that fails leaves the others")
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

    @Test("a result that comes with a warning counts as unknown, and the next one does not")
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
            #expect(try results[1].get().first(Int64.self) == 1)
        }
    }

    @Test("a call ends at its limit with an unknown outcome, and the next call has a new connection")
    func deadlines() async throws {
        try await TestDatabase.with(connections: 1, isMigrated: false) { databases in
            // Connects first, so that the limit applies to the statement.
            _ = try await databases[0].rows("SELECT 'here'", columns: 1)
            let error = await refusal {
                try await databases[0].run([PostgresStatement("SELECT pg_sleep(30)")], within: .seconds(1))
            }
            #expect(error?.code == .outcomeUnknown)
            let rows = try await databases[0].rows("SELECT 'again'", columns: 1)
            #expect(rows == [["again"]])
        }
    }

    @Test("a connection that the server closed while it was idle is opened again without an error")
    func staleness() async throws {
        try await TestDatabase.with(connections: 2, isMigrated: false) { databases in
            let pid = try await databases[0].rows("SELECT pg_backend_pid()::text", columns: 1)[0][0] ?? ""
            let ended = "SELECT pg_terminate_backend(\(pid), 5000)::text"
            #expect(try await databases[1].rows(ended, columns: 1) == [["true"]])
            #expect(try await databases[0].rows("SELECT 'alive'", columns: 1) == [["alive"]])
        }
    }

    @Test("an unreachable server is unavailable, not unknown: nothing was sent") func unavailable() async throws {
        let error = await refusal {
            try await TestDatabase("no_such_database").run([PostgresStatement("SELECT 1")])
        }
        #expect(error?.code == .unavailable && error?.mayRetry == true)
    }
}

/// A port at which no handshake is answered, as at a machine that is lost: its queue of connections is full.
private struct SilentPort {
    let address: ServerAddress
    private let descriptors: [Int32]

    init() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        // The queue takes one more than the backlog.
        let client = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let isFull = withUnsafeMutablePointer(to: &name) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, length) == 0 && listen(listener, 0) == 0 && getsockname(listener, $0, &length) == 0
                    && connect(client, $0, length) == 0
            }
        }
        descriptors = [listener, client]
        guard isFull else { throw Failure("no silent port") }
        address = ServerAddress(host: "127.0.0.1", port: Int(UInt16(bigEndian: name.sin_port)))
    }

    func close() {
        for descriptor in descriptors { Glibc.close(descriptor) }
    }
}
