import Foundation
import TestSupport
import Testing

extension RunningSystem {
    /// On a stack of its own, because its ids differ afterwards. `deploy/faults/failover.sh` tests a standby that lacks
    /// the last commits.
    @Suite("Failover")
    struct FailoverTests {
        @Test("the database fails over to a synchronous standby under load: nothing is lost, doubled or out of order")
        func database() async throws {
            let stack = try await Stack.start()
            defer { stack.stop() }
            let port = try FreePorts.find(1)[0]
            let standby = try await stack.standby(port: port)
            try standby.start()
            defer { standby.stop(by: SIGINT) }
            // One call for each: `ALTER SYSTEM` cannot run in a transaction.
            for statement in ["ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()"] {
                _ = try await stack.ask(statement)
            }
            try await eventually("commits wait for the standby", within: .seconds(30)) {
                try await stack.ask("SELECT string_agg(sync_state, ' ') FROM pg_stat_replication") == "sync"
            }
            let campaign = Campaign(stack, name: "failover")
            try await campaign.run {
                try await eventually("pushes", within: .seconds(60)) { campaign.count > 500 }
                let primary = try stack.process("postgres")
                primary.stop(by: SIGKILL)
                _ = try await stack.ask("SELECT pg_promote()", port: port)
                standby.stop(by: SIGINT)
                try stack.takeOver()
                try primary.start()
                let before = campaign.count
                try await eventually("the service continues", within: .seconds(60)) {
                    guard campaign.count > before + 200 else { return false }
                    return await stack.isReady()
                }
            }
            #expect(campaign.faults() == [])
            #expect(try await stack.ask("SHOW synchronous_standby_names").isEmpty, "it is the standby that serves")
        }
    }
}
