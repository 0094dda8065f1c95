import ArgumentParser
import ChildProcesses
import Foundation

/// Starts the stack of a torture run: the proxies, then the settings of each process, then `deploy/up`.
extension TortureStack {
    /// The ports of the stack.
    private struct Ports {
        /// Number of consecutive ports that a stack uses.
        private static let count = 34

        let first: Int
        // The ingest and the gateway can each have three more ports after the first. The broker uses two ports after
        // its first.
        var api: Int { first }
        var device: Int { first + 4 }
        var console: Int { first + 8 }
        var database: Int { first + 9 }
        var broker: Int { first + 10 }
        var tenant: Int { first + 13 }
        var health: Int { first + 14 }

        /// Finds ports that are free now.
        static func findFree(in folder: URL) async throws -> Ports {
            let text = try await ChildProcess.output(of: ["deploy/scripts/free-ports.sh", "\(count)"], in: folder)
            guard let first = Int(text.trimmingCharacters(in: .whitespacesAndNewlines)) else {
                throw ValidationError("no free ports: \(text)")
            }
            return Ports(first: first)
        }

        /// The settings of `deploy/up`.
        var environment: [String: String] {
            [
                "MSS_STACK_API_PORT": "\(api)", "MSS_STACK_DEVICE_PORT": "\(device)",
                "MSS_STACK_CONSOLE_PORT": "\(console)", "MSS_STACK_POSTGRES_PORT": "\(database)",
                "MSS_STACK_RABBITMQ_PORT": "\(broker)", "MSS_STACK_TENANT_PORT": "\(tenant)",
                "MSS_STACK_HEALTH_PORT": "\(health)",
            ]
        }
    }

    private static let diskMegabytes = 4_000

    /// Makes the proxies and starts everything.
    ///
    /// - Parameters:
    /// - folder: folder for the data of the stack.
    /// - build: `release` or `debug`.
    /// - hasDisk: whether the database has a separate disk.
    /// - operationsPort: port of the tenant's endpoint for device operations.
    static func start(
        in folder: URL, build: String, hasDisk: Bool, operationsPort: Int
    ) async throws -> TortureStack {
        let ports = try await Ports.findFree(in: folder)
        var environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("MSS_") }
        environment.merge(ports.environment) { $1 }
        environment["MSS_STACK_FOLDER"] = folder.path
        environment["MSS_STACK_CONFIGURATION"] = build
        let proxies = try await makeProxies(ports, operationsPort: operationsPort)
        let stack = TortureStack(
            folder: folder, proxies: proxies, environment: environment, tenantPort: ports.tenant,
            diskFile: hasDisk ? try await makeDisk(in: folder) : nil)
        try await stack.writeSettings()
        do {
            try await stack.deploy(
                ["deploy/up", "--detach", "--plain"]
                    + ["ingest", "writer", "gateway", "relay"].flatMap { ["--scale", "\($0)=\(scale)"] })
            // The database's initial files must be on the disk before its power can fail.
            if hasDisk { try await stack.deploy(["sync", "--file-system", folder.appending(path: "postgres").path]) }
        } catch {
            await stack.stop()
            throw error
        }
        return stack
    }

    /// Creates one proxy for each server and each of its clients. Devices share proxies, and backends share proxies.
    private static func makeProxies(
        _ ports: Ports, operationsPort: Int
    ) async throws -> [FaultKind.Edge: [FaultProxy]] {
        var proxies: [FaultKind.Edge: [FaultProxy]] = [:]
        for edge in FaultKind.Edge.allCases {
            let (client, server) = edge.ends
            switch edge {
            case .backendToIngest, .deviceToGateway:
                for number in 1...scale {
                    let port = (edge == .backendToIngest ? ports.api : ports.device) + number - 1
                    proxies[edge, default: []].append(
                        try await .start("\(client) to \(server)-\(number)", before: port))
                }
            case .validatorToTenant:
                proxies[edge] = [try await .start("\(client) to \(server)", before: ports.tenant)]
            case .relayToTenant:
                proxies[edge] = [try await .start("\(client) to \(server)", before: operationsPort)]
            default:
                for process in processes(of: edge) {
                    proxies[edge, default: []].append(
                        try await .start(
                            "\(process) to \(server)", before: edge.isAMQP ? ports.broker : ports.database,
                            serverProtocol: edge.isAMQP ? .amqp : .other))
                }
            }
        }
        return proxies
    }

    /// The client processes of an edge to a broker or a database, in the order of their proxies.
    private static func processes(of edge: FaultKind.Edge) -> [String] {
        Tier(rawValue: edge.ends.client)?.processes(scale) ?? []
    }

    private static func makeDisk(in folder: URL) async throws -> URL {
        let file = folder.appending(path: "database.disk")
        _ = try await ChildProcess.output(of: [diskTool, "make", file.path, "\(diskMegabytes)"], in: folder)
        _ = try await ChildProcess.output(
            of: [diskTool, "mount", file.path, folder.appending(path: "postgres").path], in: folder)
        return file
    }

    /// Writes the settings of each process: the ports of its proxies, and the library for machine faults.
    private func writeSettings() async throws {
        let library = folder.appending(path: "machine_faults.so").path
        _ = try await ChildProcess.output(of: [Self.machineFaults, "build", library], in: folder)
        for name in ["machines", "settings"] {
            try FileManager.default.createDirectory(at: folder.appending(path: name), withIntermediateDirectories: true)
        }
        var settings: [String: [String]] = [:]
        for process in Tier.relay.processes(Self.scale) {
            settings[process, default: []].append("MSS_RELAY_ALLOWED_HOSTS=\(operationsOrigin)")
        }
        for (edge, proxies) in proxies where edge != .relayToTenant {
            for (process, proxy) in zip(Self.processes(of: edge), proxies) {
                switch edge {
                case .validatorToTenant:
                    settings[process, default: []].append("MSS_VALIDATOR_ALLOWED_HOSTS=http://127.0.0.1:\(proxy.port)")
                case _ where edge.isAMQP: settings[process, default: []].append("MSS_AMQP_PORT=\(proxy.port)")
                default: settings[process, default: []].append("MSS_POSTGRES_PORT=\(proxy.port)")
                }
            }
        }
        for process in Tier.allCases.filter({ $0 != .broker }).flatMap({ $0.processes(Self.scale) }) {
            let file = Self.machineFile(of: process, in: folder)
            _ = try await ChildProcess.output(of: [Self.machineFaults, "set", file, "0"], in: folder)
            settings[process, default: []] += ["LD_PRELOAD=\(library)", "MACHINE_FAULTS=\(file)"]
        }
        for (process, lines) in settings {
            try (lines.joined(separator: "\n") + "\n").write(
                to: folder.appending(path: "settings/\(process)"), atomically: true, encoding: .utf8)
        }
    }
}
