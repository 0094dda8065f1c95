import DeviceProtocol
import Foundation
import TestSupport
import Testing

/// The folder of promtool and prometheus; nil: no tests of observability.
private let tools = ProcessInfo.processInfo.environment["MSS_TEST_PROMETHEUS"]

extension SecondRunningSystem {
    /// The metrics, alerts and dashboard that operators use. Needs `MSS_TEST_PROMETHEUS`, a folder that
    /// `deploy/scripts/prometheus.sh` prepares; `deploy/test` sets it.
    @Suite("Observability", .enabled(if: tools != nil, "needs MSS_TEST_PROMETHEUS"))
    struct ObservabilityTests {
        private let stack: Stack
        private let programs: URL
        private let files = ProjectFolder.url.appending(path: "deploy/observability")

        init() throws {
            stack = try Stack.running
            programs = URL(fileURLWithPath: try requireValue(tools, "no promtool"))
        }

        /// Runs promtool.
        private func check(_ arguments: String...) async throws -> (status: Int32, output: String) {
            try await Command.run(programs.appending(path: "promtool"), arguments, environment: [:])
        }

        @Test("promtool accepts the metrics of every process, including each help text")
        func exposition() async throws {
            let file = stack.folder.appending(path: "exposition.txt")
            for port in stack.healthPorts {
                try await stack.get("http://127.0.0.1:\(port)/metrics").body.write(
                    to: file, atomically: true, encoding: .utf8)
                let (status, output) = try await Command.run(
                    URL(fileURLWithPath: "/bin/sh"),
                    ["-c", #""$0" check metrics < "$1""#, programs.appending(path: "promtool").path, file.path],
                    environment: [:])
                #expect(status == 0 && output.isEmpty, "port \(port): \(output)")
            }
        }

        @Test("the alerts are valid, fire when they should, and not before") func alerts() async throws {
            let configuration = try await check("check", "config", files.appending(path: "prometheus.yml").path)
            #expect(configuration.status == 0, "\(configuration.output)")
            let rules = try await check("test", "rules", files.appending(path: "rules_test.yml").path)
            #expect(rules.status == 0, "\(rules.output)")
        }

        @Test("after the main path every query of the dashboard has data, and every alert can be evaluated")
        func dashboard() async throws {
            let prometheus = try startPrometheus()
            defer { prometheus.process.stop() }
            try await eventually("every process was scraped", within: .seconds(60)) {
                (try? await prometheus.numbers("sum(up)")) == [Double(stack.healthPorts.count)]
            }
            let device = try await RawDevice.connect(stack, gateway: 0, device: "dash-d", user: "dash-u") {
                $0.bind.sessionID = "dash-s"
            }
            try await device.isCaughtUp()
            _ = try await Caller(apis: stack.apis).push("TRADE-SECURE", to: "dash-u", id: "dash-1", payload: "1")
            try await device.waits(for: "the push") { _ in device.payloads("TRADE-SECURE") == ["1"] }
            var missing = try dashboardQueries()
            #expect(missing.count > 30)
            try await eventually("data for \(missing)", within: .seconds(60)) {
                for query in missing where try await !prometheus.numbers(query).isEmpty { missing.remove(query) }
                return missing.isEmpty
            }
            try await eventually("every rule was evaluated", within: .seconds(60)) {
                let health = try await prometheus.ruleHealth()
                return health.count > 10 && health.allSatisfy { $0 == "ok" }
            }
            try await device.disconnect()
        }

        /// The queries of all panels, over the last minute.
        private func dashboardQueries() throws -> Set<String> {
            struct Dashboard: Decodable {
                struct Panel: Decodable {
                    struct Target: Decodable { let expr: String }
                    let targets: [Target]?
                }
                let panels: [Panel]
            }
            let text = try Data(contentsOf: files.appending(path: "dashboard.json"))
            let panels = try JSONDecoder().decode(Dashboard.self, from: text).panels
            return Set(panels.flatMap { $0.targets ?? [] }.map { $0.expr.replacing("$__rate_interval", with: "1m") })
        }

        private func startPrometheus() throws -> Prometheus {
            let folder = stack.folder.appending(path: "prometheus")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let targets = stack.healthPorts.map { "127.0.0.1:\($0)" }.joined(separator: ", ")
            let settings = folder.appending(path: "prometheus.yml")
            try """
            global: {scrape_interval: 1s, evaluation_interval: 1s}
            rule_files: [\(files.appending(path: "rules.yml").path)]
            scrape_configs: [{job_name: mss, static_configs: [{targets: [\(targets)]}]}]
            """.write(to: settings, atomically: true, encoding: .utf8)
            let port = try FreePorts.find(1)[0]
            let process = Supervised(
                name: "prometheus", executable: programs.appending(path: "prometheus"),
                arguments: [
                    "--config.file=\(settings.path)", "--storage.tsdb.path=\(folder.path)",
                    "--web.listen-address=127.0.0.1:\(port)",
                ], environment: [:], log: folder.appending(path: "prometheus.log"))
            try process.start()
            return Prometheus(process: process, stack: stack, port: port)
        }
    }
}

/// A Prometheus server that scrapes the stack's processes every second.
private struct Prometheus {
    let process: Supervised
    let stack: Stack
    let port: Int

    /// The numbers that a query returns now; NaN and infinite values are left out.
    func numbers(_ query: String) async throws -> [Double] {
        struct Series: Decodable {
            let number: Double?

            enum CodingKeys: CodingKey { case value }

            init(from decoder: any Decoder) throws {
                var pair = try decoder.container(keyedBy: CodingKeys.self).nestedUnkeyedContainer(forKey: .value)
                _ = try pair.decode(Double.self)
                number = Double(try pair.decode(String.self))
            }
        }
        struct Result: Decodable { let result: [Series] }
        var address = URLComponents()
        address.queryItems = [URLQueryItem(name: "query", value: query)]
        // A query string decodes `+` as a space.
        let text = (address.percentEncodedQuery ?? "").replacing("+", with: "%2B")
        let result: Result = try await ask("query?\(text)")
        return result.result.compactMap(\.number).filter { !$0.isNaN }
    }

    /// The health of each rule's last evaluation: `ok`, `err` or `unknown`.
    func ruleHealth() async throws -> [String] {
        struct Rule: Decodable { let health: String }
        struct Group: Decodable { let rules: [Rule] }
        struct Groups: Decodable { let groups: [Group] }
        let groups: Groups = try await ask("rules")
        return groups.groups.flatMap(\.rules).map(\.health)
    }

    private func ask<Content: Decodable>(_ path: String) async throws -> Content {
        let (_, body) = try await stack.get("http://127.0.0.1:\(port)/api/v1/\(path)")
        return try JSONDecoder().decode(PrometheusAnswer<Content>.self, from: Data(body.utf8)).data
    }
}

private struct PrometheusAnswer<Content: Decodable>: Decodable { let data: Content }
