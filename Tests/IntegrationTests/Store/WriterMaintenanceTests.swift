import Foundation
import Logging
import PostgreSQL
import ServiceKit
import SyncStore
import TestSupport
import Testing

@testable import AMQP
@testable import OplogWriter

@Suite("Maintenance of partitions", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct WriterMaintenanceTests {
    /// There is no broker.
    private static let bus = MessageBus(
        configuration: AMQPConfiguration(host: "127.0.0.1", port: 1, user: "", password: ""), consumptions: [],
        logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })

    @Test("a row that cannot be removed delays neither readiness nor the removal of everything else")
    func apart() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let login = "keeper_\(UUID().uuidString.replacing("-", with: "").lowercased())"
            try await database.execute(
                """
                CREATE ROLE \(login) LOGIN IN ROLE mss_writer;
                CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
                    'BEGIN RAISE EXCEPTION ''canceling statement due to statement timeout''; END';
                CREATE TRIGGER refuse BEFORE DELETE ON session_revocation EXECUTE FUNCTION refuse();
                INSERT INTO session_revocation VALUES ('app', 'u', '', now() - interval '40 days');
                INSERT INTO request_nonce VALUES ('k1', '', '', now());
                INSERT INTO push_quota VALUES ('app', '', current_date - 3, 1, 1);
                """)
            let health = HealthState()
            let configuration = PostgresConfiguration(
                host: "127.0.0.1", port: TestDatabase.port ?? 0, database: database.database, user: login)
            let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            let keeper = WriterMaintenance(configuration: configuration, logger: logger)
            let watch = WriterHeartbeat(
                configuration: configuration, rollouts: RolloutClock(bus: Self.bus),
                databaseTime: Self.bus.databaseTime,
                health: health, logger: logger)
            func rows(in table: String) async throws -> Int {
                try await database.rows("SELECT 'x' FROM \(table)", columns: 1).count
            }
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await keeper.run() }
                group.addTask { try await watch.run() }
                try await eventually("nonces and counts are removed", within: .seconds(10)) {
                    let left = [try await rows(in: "request_nonce"), try await rows(in: "push_quota")]
                    return left == [0, 0]
                }
                try await eventually("it is ready", within: .seconds(10)) { health.readiness.isReady }
                #expect(try await rows(in: "session_revocation") == 1)
                // Also in the turns between the hours.
                try await database.execute("INSERT INTO request_nonce VALUES ('k1', '', '', now())")
                try await eventually("nonces are still removed", within: .seconds(10)) {
                    try await rows(in: "request_nonce") == 0
                }
                #expect(health.readiness.isReady)
                try await database.execute("DROP TRIGGER refuse ON session_revocation")
                try await eventually("revocations are removed", within: .seconds(10)) {
                    try await rows(in: "session_revocation") == 0
                }
                group.cancelAll()
            }
            try await database.execute("DROP ROLE \(login)")
        }
    }
}
