import ConnectionThread
import Foundation
import Logging
import PostgreSQL
import SyncStore

/// A connection to the test server, on a thread of its own.
actor StatisticsDatabase {
    /// The server's port, `MSS_TEST_POSTGRES_PORT`; without it there is no server to test with.
    static let port = ProcessInfo.processInfo.environment["MSS_TEST_POSTGRES_PORT"].flatMap { Int($0) }

    private let thread = ConnectionThread(name: "test")
    private let connection: PostgresConnection

    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// - Parameter database: one of the server's databases; it is not checked.
    init(_ database: String) {
        let configuration = PostgresConfiguration(
            host: "127.0.0.1", port: Self.port ?? 0, database: database, user: "mss")
        connection = PostgresConnection(configuration: configuration, logger: Logger(label: "test"))
    }

    /// Runs the body with a migrated database of its own and `count` connections to it.
    static func with(
        connections count: Int, _ body: @Sendable ([StatisticsDatabase]) async throws -> Void
    ) async throws {
        let name = "test_\(UUID().uuidString.lowercased().replacing("-", with: ""))"
        let server = StatisticsDatabase("postgres")
        try await server.execute("CREATE DATABASE \(name)")
        let databases = (0..<count).map { _ in StatisticsDatabase(name) }
        try await databases[0].migrate()
        let result = await Result { try await body(databases) }
        for database in databases { await database.close() }
        try await server.execute("DROP DATABASE \(name)")
        await server.close()
        try result.get()
    }

    func execute(_ script: String) throws { try connection.execute(script: script, within: .seconds(30)) }

    func migrate() throws { _ = try MigrationRunner.migrate(connection) }

    func fold(_ batch: StatisticsBatch) throws(PostgresError) {
        try connection.run(StatisticsStore.fold(batch), within: .seconds(10))
    }

    /// The rows of a query whose columns are all text.
    func rows(_ sql: String, columns: Int) throws -> [[String?]] {
        try connection.run(PostgresStatement(sql), within: .seconds(10)).map { row in
            (0..<columns).map { row.isNull($0) ? nil : row.text($0) }
        }
    }

    func close() {
        connection.close()
        thread.stop()
    }
}

extension Result where Failure == any Error {
    fileprivate init(_ body: () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
