import ConnectionThread
import Foundation
import Logging
package import PostgreSQL
package import SyncModel
package import SyncStore

/// Connections to a database of the test server, on one thread: that of the owner to look and to arrange, and those of
/// the tiers, with their rights, for what the tiers do.
package actor TestDatabase {
    /// The server's port, `MSS_TEST_POSTGRES_PORT`; without it there is no server to test with.
    package static let port = ProcessInfo.processInfo.environment["MSS_TEST_POSTGRES_PORT"].flatMap { Int($0) }

    /// The database's name.
    package nonisolated let database: String
    private let configuration: PostgresConfiguration
    private let thread = ConnectionThread(name: "test")
    private let owner: PostgresConnection
    private let writer: PostgresConnection
    private let statistics: PostgresConnection
    private let console: PostgresConnection
    private let notifier: PostgresConnection
    private let relay: PostgresConnection

    package nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - database: one of the server's databases; it is not checked.
    ///   - user: who logs in, instead of the owner.
    ///   - hasTiers: false: everything is done by the one who logs in.
    package init(_ database: String, port: Int? = port, user: String = "mss", hasTiers: Bool = false) {
        self.init(
            PostgresConfiguration(host: "127.0.0.1", port: port ?? 0, database: database, user: user),
            hasTiers: hasTiers)
    }

    /// - Parameters:
    ///   - configuration: of any server.
    ///   - hasTiers: false: everything is done by the one who logs in.
    package init(_ configuration: PostgresConfiguration, hasTiers: Bool = false) {
        database = configuration.database
        self.configuration = configuration
        func connection(as role: String?) -> PostgresConnection {
            PostgresConnection(configuration: configuration, logger: Logger(label: "test")) {
                connection throws(PostgresError) in
                if let role { try connection.execute(script: "SET ROLE \(role)", within: .seconds(5)) }
            }
        }
        owner = connection(as: nil)
        writer = hasTiers ? connection(as: "mss_writer") : owner
        statistics = hasTiers ? connection(as: "mss_statistics") : owner
        console = hasTiers ? connection(as: "mss_console") : owner
        notifier = hasTiers ? connection(as: "mss_notifier") : owner
        relay = hasTiers ? connection(as: "mss_relay") : owner
    }

    /// Databases at a time: making one copies the server's template, and its migrations meet others' at the roles.
    private static let turnstile = Turnstile(places: 4)

    /// Runs the body with a database of its own and `count` connections to it; in one that is not migrated there are no
    /// tiers.
    package static func with(
        connections count: Int, isMigrated: Bool = true, _ body: @Sendable ([TestDatabase]) async throws -> Void
    ) async throws {
        try await turnstile.pass { try await made(connections: count, isMigrated: isMigrated, body) }
    }

    private static func made(
        connections count: Int, isMigrated: Bool, _ body: @Sendable ([TestDatabase]) async throws -> Void
    ) async throws {
        let name = "test_\(UUID().uuidString.lowercased().replacing("-", with: ""))"
        let server = TestDatabase(
            PostgresConfiguration(
                host: "127.0.0.1", port: port ?? 0, database: "postgres", user: "mss", statementTimeout: .seconds(60)))
        try await server.execute("CREATE DATABASE \(name)")
        let databases = (0..<count).map { _ in TestDatabase(name, hasTiers: isMigrated) }
        if isMigrated { _ = try await databases[0].migrate() }
        let result = await Result { try await body(databases) }
        for database in databases { await database.close() }
        try await server.execute("DROP DATABASE \(name)")
        await server.close()
        try result.get()
    }

    /// As the owner.
    package func execute(_ script: String) throws(PostgresError) {
        try owner.execute(script: script, within: .seconds(60))
    }

    /// As the oplog writer.
    package func executeAsWriter(_ script: String) throws(PostgresError) {
        try writer.execute(script: script, within: .seconds(30))
    }

    /// Returns the names of the migrations applied.
    package func migrate(to all: [Migration] = Migration.all) throws -> [String] {
        try MigrationRunner.migrate(owner, to: all)
    }

    package func makeLogins(passwords: [String: String]) throws(PostgresError) {
        try TierLogins.make(owner, passwords: passwords)
    }

    /// As the statistics aggregator.
    package func fold(_ batch: StatisticsBatch) throws(PostgresError) {
        try statistics.run(StatisticsStore.fold(batch), within: .seconds(10))
    }

    /// As the statistics aggregator.
    package func runAsStatistics<Output>(_ query: Query<Output>) throws(PostgresError) -> Output {
        try statistics.run(query, within: .seconds(10))
    }

    /// As the console.
    package func runAsConsole<Output>(_ query: Query<Output>) throws(PostgresError) -> Output {
        try console.run(query, within: .seconds(10))
    }

    /// As the notifier.
    package func runAsNotifier<Output>(_ query: Query<Output>) throws(PostgresError) -> Output {
        try notifier.run(query, within: .seconds(10))
    }

    /// As the relay.
    package func runAsRelay<Output>(_ query: Query<Output>) throws(PostgresError) -> Output {
        try relay.run(query, within: .seconds(10))
    }

    /// As the oplog writer.
    package func run<Output>(_ query: Query<Output>) throws(PostgresError) -> Output {
        try writer.run(query, within: .seconds(10))
    }

    /// As the oplog writer's lanes for operations, which work for one instance at a time.
    package func runAsOperator<Output>(
        _ query: Query<Output>, of instanceID: InstanceID = InstanceID("app")
    ) throws(PostgresError) -> Output {
        try writer.execute(script: "SET ROLE mss_operator", within: .seconds(5))
        try writer.run(SyncDatabase.bind(to: instanceID), within: .seconds(5))
        let result = Result { () throws(PostgresError) in try writer.run(query, within: .seconds(10)) }
        try writer.execute(script: "SET ROLE mss_writer", within: .seconds(5))
        return try result.get()
    }

    /// Works on the oplog writer's connection.
    package func asWriter<Output: Sendable>(_ body: @Sendable (PostgresConnection) throws -> Output) throws -> Output {
        try body(writer)
    }

    /// As the oplog writer.
    package func run(
        _ statements: [PostgresStatement], within limit: Duration = .seconds(10)
    ) throws(PostgresError) -> [Result<PostgresRows, PostgresError>] {
        try writer.run(statements, within: limit)
    }

    /// Stores pushes that all have a configuration.
    package func append(_ pushes: [OplogStore.Append]) throws -> [OplogStore.Appended] {
        try run(OplogStore.append(pushes)).map { try requireValue($0, "no configuration took the push") }
    }

    /// Makes instance "app" with an online configuration "B" for every device of a user.
    package func configure(isMultiDevice: Bool = true) throws {
        try configure([
            SyncConfiguration(
                instanceID: InstanceID("app"), bizType: BizType("B"), description: "", kind: .user,
                isMultiDevice: isMultiDevice, isPersistent: true, repush: .all, checksSession: false, isOnline: true)
        ])
    }

    /// The same with these configurations of the instance.
    package func configure(_ configurations: [SyncConfiguration]) throws {
        let instance = Instance(
            id: InstanceID("app"), name: "", isEnabled: true, validatorURL: "", verdictLifetime: .seconds(600))
        _ = try run(ControlStore.put(instance, by: "test"))
        for configuration in configurations { _ = try run(ControlStore.put(configuration, by: "test")) }
    }

    /// Connects a process's way, as whoever logs in.
    package func connectAsProcess() throws(PostgresError) {
        let connection = SyncDatabase.connection(configuration, logger: Logger(label: "test"))
        _ = try connection.run(PostgresStatement("SELECT 1"), within: .seconds(5))
    }

    package func verify() throws { try MigrationRunner.verify(writer) }

    /// The rows of a query whose columns are all text, as the owner.
    package func rows(_ sql: String, columns: Int) throws -> [[String?]] {
        try owner.run(PostgresStatement(sql), within: .seconds(10)).map { row in
            (0..<columns).map { row.isNull($0) ? nil : row.text($0) }
        }
    }

    package func close() {
        for connection in [owner, writer, statistics, console, notifier, relay] { connection.close() }
        thread.stop()
    }
}

/// What the database said no with; nil when it did not.
package func refusal<Output: Sendable>(_ body: () async throws -> Output) async -> PostgresError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? PostgresError
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
