import Foundation
import TestSupport
import Testing

extension RunningSystem {
    @Suite("mssctl load")
    struct LoadTests {
        private struct Report: Decodable {
            struct Step: Decodable {
                let deliveries: Int
                let isComplete: Bool
            }

            let devices: Int
            let steps: [Step]
            let lost: Int
        }

        let stack: Stack

        init() throws { stack = try Stack.running }

        /// Runs a scenario of `deploy/load`, small and short, with two APIs and two gateways.
        private func run(_ scenario: String, _ more: [String] = []) async throws -> (status: Int32, report: Report?) {
            let root = ProjectFolder.url
            let file = stack.folder.appending(path: "load-\(UUID().uuidString).json")
            func addresses(_ ports: [Int]) -> String { ports.map { "127.0.0.1:\($0)" }.joined(separator: ",") }
            let outcome = try await stack.tool(
                [
                    "load", "--scenario", root.appending(path: "deploy/load/\(scenario).json").path, "--api",
                    addresses(stack.apis), "--gateway", addresses(stack.gateways), "--ca", stack.certificateAuthority,
                    "--instance", Stack.globalInstance, "--global-biz-type", "NEWS-NOW", "--no-resources", "--devices",
                    "24", "--rate", "60", "--seconds", "2", "--report", file.path,
                ] + more)
            if outcome.status != 0 { Issue.record("\(scenario): \(outcome.output)") }
            let data = try? Data(contentsOf: file)
            return (outcome.status, try data.map { try JSONDecoder().decode(Report.self, from: $0) })
        }

        @Test(
            "every kind of load is delivered completely, once and in order",
            arguments: [
                "single", "batch", "hot-user", "many-users", "backlog", "broadcast", "idle", "connect-storm",
                "slow-devices",
            ]
        )
        func kinds(scenario: String) async throws {
            let (status, report) = try await run(scenario)
            #expect(status == 0 && report?.devices == 24 && report?.lost == 0)
            let deliveries = report?.steps.reduce(0) { $0 + $1.deliveries } ?? 0
            #expect(scenario == "idle" || deliveries > 20, "\(deliveries)")
        }

        @Test(
            "a load for all devices of a user, and a mixed one, are delivered completely",
            arguments: ["multi-device", "mixed"])
        func devices(scenario: String) async throws {
            let (status, report) = try await run(scenario, ["--instance", Stack.instance])
            #expect(status == 0 && report?.lost == 0)
            #expect((report?.steps.last?.deliveries ?? 0) > 200)
        }
    }
}
