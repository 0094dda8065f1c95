import Foundation
import SyncStore
import TestSupport
import Testing

extension ExclusiveSystem {
    @Suite("Restarts under load")
    struct RestartTests {
        let stack: Stack

        init() throws { stack = try Stack.running }

        @Test(
            "H5, D3: each process, RabbitMQ and PostgreSQL killed in turn: nothing is lost or doubled, whole in 30 s"
        )
        func kills() async throws {
            let campaign = Campaign(stack, name: "kills")
            try await campaign.run {
                for name in [
                    "ingest-0", "writer-0", "gateway-0", "validator", "statistics", "ingest-1", "writer-1", "gateway-1",
                    "console", "rabbitmq", "postgres",
                ] {
                    try await restarted(name, by: SIGKILL, under: campaign)
                }
            }
            #expect(campaign.faults() == [])
        }

        @Test("H5: a rolling restart under load: nothing is lost, doubled or out of order")
        func rolls() async throws {
            let campaign = Campaign(stack, name: "rolls")
            try await campaign.run {
                for name in [
                    "ingest-0", "ingest-1", "gateway-0", "gateway-1", "validator", "writer-0", "writer-1", "statistics",
                    "console",
                ] {
                    try await restarted(name, by: SIGTERM, under: campaign)
                }
            }
            #expect(campaign.faults() == [])
        }

        @Test("a newer schema under load: nothing is lost, also when a process of the older build starts again")
        func schemaGrows() async throws {
            let campaign = Campaign(stack, name: "grows")
            let grown = Migration(
                "m9999_grown", script: "ALTER TABLE oplog ADD COLUMN grown bigint; CREATE TABLE grown (id bigint)",
                isAdditive: true)
            try await campaign.run {
                let database = stack.database()
                #expect(try await database.migrate(to: Migration.all + [grown]) == [grown.name])
                await database.close()
                for name in ["writer-0", "writer-1", "statistics", "console"] {
                    try await restarted(name, by: SIGKILL, under: campaign)
                }
            }
            #expect(campaign.faults() == [])
        }

        /// Ends a process under a campaign's load. It starts again, and the promises still hold.
        private func restarted(_ name: String, by signal: Int32, under campaign: Campaign) async throws {
            let before = campaign.count
            let process = try stack.process(name)
            let starts = process.starts
            process.signal(signal)
            try await eventually("\(name) is whole again", within: .seconds(30)) {
                guard process.starts > starts, campaign.count > before + 50 else { return false }
                return await stack.isReady()
            }
        }
    }
}
