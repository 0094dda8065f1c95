import ConnectionThread
import Foundation
import Logging
package import PostgreSQL
package import SyncModel
package import SyncStore

/// Connections to a database of the test server, on one thread: one of the owner, for preparation and checks, and one
/// for each tier with that tier's rights.
package actor TestDatabase {
    /// The server's port, `MSS_TEST_POSTGRES_PORT`. A nil value means: there is no test server.
    package static let port = ProcessInfo.processInfo.environment["MSS_TEST_POSTGRES_PORT"].flatMap { Int($0) }

    /// The database's name.
    package nonisolated let database: String
    /// The stores with which the database was migrated.
    package nonisolated let stores: StoreLayout
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
    ///   - user: the login to use instead of the owner.
    ///   - hasTiers: false to do everything as this login.
    package init(
        _ database: String, port: Int? = port, user: String = "mss", hasTiers: Bool = false,
        stores: StoreLayout = .single
    ) {
        self.init(
            PostgresConfiguration(host: "127.0.0.1", port: port ?? 0, database: database, user: user),
            hasTiers: hasTiers, stores: stores)
    }

    /// - Parameters:
    ///   - configuration: the connection to any server.
    ///   - hasTiers: false to do everything as the login of the configuration.
    package init(_ configuration: PostgresConfiguration, hasTiers: Bool = false, stores: StoreLayout = .single) {
        database = configuration.database
        self.stores = stores
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

    /// Limits the databases at a time. To make a database locks the roles.
    private static let turnstile = Turnstile(places: 4)

    /// Runs the body with a new database and `count` connections to it. A database without migrations has no tiers.
    package static func with(
        connections count: Int, isMigrated: Bool = true, stores: StoreLayout = .single,
        _ body: @Sendable ([TestDatabase]) async throws -> Void
    ) async throws {
        try await turnstile.pass { try await made(connections: count, isMigrated: isMigrated, stores, body) }
    }

    /// A connection that makes, migrates and drops databases. It waits for the locks of others, which do the same.
    ///
    /// - Parameter database: the one to migrate.
    static func ofServer(_ database: String = "postgres", stores: StoreLayout = .single) -> TestDatabase {
        let address = ServerAddress(host: "127.0.0.1", port: port ?? 0)
        return TestDatabase(
            PostgresConfiguration(
                addresses: [address], database: database, user: "mss", statementTimeout: .seconds(60),
                lockTimeout: .seconds(60)), stores: stores)
    }

    private static func made(
        connections count: Int, isMigrated: Bool, _ stores: StoreLayout,
        _ body: @Sendable ([TestDatabase]) async throws -> Void
    ) async throws {
        let name = "test_\(UUID().uuidString.lowercased().replacing("-", with: ""))"
        let template = isMigrated ? try await TestDatabaseTemplates.shared.name(for: stores) : "template1"
        let server = ofServer()
        try await server.execute("CREATE DATABASE \(name) TEMPLATE \(template)")
        if isMigrated {
            // The copy of a database lacks the rights on the database and its search path.
            let copy = ofServer(name, stores: stores)
            _ = try await copy.migrate(stores: stores)
            await copy.close()
        }
        let databases = (0..<count).map { _ in TestDatabase(name, hasTiers: isMigrated, stores: stores) }
        let result = await Result { try await body(databases) }
        for database in databases { await database.close() }
        try await server.execute("DROP DATABASE \(name)")
        await server.close()
        try result.get()
    }

    /// Executes as the owner.
    package func execute(_ script: String) throws(PostgresError) {
        try owner.execute(script: script, within: .seconds(60))
    }

    /// Executes as the oplog writer.
    package func executeAsWriter(_ script: String) throws(PostgresError) {
        try writer.execute(script: script, within: .seconds(30))
    }

    /// Returns the names of the migrations applied and of the function files that had changed.
    package func migrate(
        stores: StoreLayout = .single, to all: [Migration] = Migration.all,
        functions: [FunctionFile] = FunctionFile.all
    ) throws -> [String] {
        try MigrationRunner.migrate(owner, stores: stores, to: all, functions: functions)
    }

    package func makeLogins(passwords: [String: String]) throws(PostgresError) {
        try TierLogins.make(owner, passwords: passwords)
    }

    /// Folds facts as the statistics aggregator.
    package func fold(_ batch: StatisticsBatch) throws(PostgresError) {
        try statistics.run(StatisticsStore.fold(batch), within: .seconds(10))
    }

    /// Runs as the statistics aggregator.
    package func runAsStatistics<Output>(_ query: Query<Output>) throws(PostgresError) -> Output {
        try statistics.run(query, within: .seconds(10))
    }

    /// Runs as the console.
    package func runAsConsole<Output>(_ query: Query<Output>) throws(PostgresError) -> Output {
        try console.run(query, within: .seconds(10))
    }

    /// Runs as the notifier.
    package func runAsNotifier<Output>(_ query: Query<Output>) throws(PostgresError) -> Output {
        try notifier.run(query, within: .seconds(10))
    }

    /// Runs as the relay.
    package func runAsRelay<Output>(_ query: Query<Output>) throws(PostgresError) -> Output {
        try relay.run(query, within: .seconds(10))
    }

    /// Runs as the oplog writer.
    package func run<Output>(_ query: Query<Output>) throws(PostgresError) -> Output {
        try writer.run(query, within: .seconds(10))
    }

    /// Runs as the oplog writer's workers for backend queries, which work for one instance at a time.
    package func runAsOperator<Output>(
        _ query: Query<Output>, of instanceID: InstanceID = InstanceID("app")
    ) throws(PostgresError) -> Output {
        try writer.execute(script: "SET ROLE mss_operator", within: .seconds(5))
        try writer.run(SyncDatabase.bind(to: instanceID), within: .seconds(5))
        let result = Result { () throws(PostgresError) in try writer.run(query, within: .seconds(10)) }
        try writer.execute(script: "SET ROLE mss_writer", within: .seconds(5))
        return try result.get()
    }

    /// Runs the body on the oplog writer's connection.
    package func asWriter<Output: Sendable>(_ body: @Sendable (PostgresConnection) throws -> Output) throws -> Output {
        try body(writer)
    }

    /// Runs the body with the writer's delivery store.
    package func asDelivery<Output: Sendable>(
        _ body: @Sendable (DeliveryDatabase) throws -> Output
    ) throws -> Output { try body(DeliveryDatabase(writer, stores)) }

    /// Runs as the oplog writer.
    package func run(
        _ statements: [PostgresStatement], within limit: Duration = .seconds(10)
    ) throws(PostgresError) -> [Result<PostgresRows, PostgresError>] {
        try writer.run(statements, within: limit)
    }

    /// Stores pushes. Each must have a configuration.
    package func append(_ pushes: [OplogStore.Append]) throws -> [OplogStore.Appended] {
        var answers = [OplogStore.Appended?](repeating: nil, count: pushes.count)
        let byStore = Dictionary(grouping: pushes.indices) { stores.store(of: pushes[$0].address.target) }
        for (store, places) in byStore {
            let query = OplogStore.append(places.map { pushes[$0] }, to: store)
            for (place, answer) in zip(places, try run(query)) { answers[place] = answer }
        }
        return try answers.map { try requireValue($0, "no configuration took the push") }
    }

    /// Creates the instance "app" with an online configuration "B" for the devices of a user.
    package func configure(isMultiDevice: Bool = true) throws {
        try configure([
            SyncConfiguration(
                instanceID: InstanceID("app"), bizType: BizType("B"), description: "", kind: .user,
                isMultiDevice: isMultiDevice, isPersistent: true, repush: .all, checksSession: false, isOnline: true)
        ])
    }

    /// Creates the instance "app" with these configurations.
    package func configure(_ configurations: [SyncConfiguration]) throws {
        let instance = Instance(
            id: InstanceID("app"), name: "", isEnabled: true, validatorURL: "", verdictLifetime: .seconds(600))
        _ = try run(ControlStore.put(instance, by: "test"))
        for configuration in configurations { _ = try run(ControlStore.put(configuration, by: "test")) }
    }

    /// Connects like a process, with the login of the configuration.
    package func connectAsProcess(stores: StoreLayout? = nil) throws(PostgresError) {
        let connection = SyncDatabase.connection(configuration, stores: stores, logger: Logger(label: "test"))
        _ = try connection.run(PostgresStatement("SELECT 1"), within: .seconds(5))
    }

    package func verify(stores: StoreLayout? = nil) throws { try MigrationRunner.verify(writer, stores: stores) }

    /// Returns the rows of a query as the owner. All columns must be text.
    package func rows(_ sql: String, columns: Int) throws -> [[String?]] {
        try owner.run(PostgresStatement(sql), within: .seconds(10)).decode { row throws(PostgresError) in
            var texts: [String?] = []
            for _ in 0..<columns { texts.append(try row.next()) }
            return texts
        }
    }

    package func close() {
        for connection in [owner, writer, statistics, console, notifier, relay] { connection.close() }
        thread.stop()
    }
}

/// Returns the database error of the body, or nil when the body has none.
package func refusal<Output: Sendable>(_ body: () async throws -> Output) async -> PostgresError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? PostgresError
    }
}

extension Result where Failure == any Error {
    /// The result of the body, or its error.
    package init(_ body: () async throws -> Success) async {
        do {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}
