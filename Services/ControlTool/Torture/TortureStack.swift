import ArgumentParser
import AsyncHTTPClient
import Foundation
import Glibc
import NIOCore
import NIOHTTP1

/// A local stack of its own for a torture run, by the checkout's own `deploy/up`: two of each process that scales, and
/// a fault proxy before every server, for each of its clients.
struct TortureStack: Sendable {
    /// What can die.
    enum Tier: String, Sendable, CaseIterable {
        case ingest, writer, gateway, validator, statistics, broker, database

        /// As their supervisors are named.
        func processes(_ scale: Int) -> [String] {
            switch self {
            case .ingest, .writer, .gateway: (1...scale).map { "\(rawValue)-\($0)" }
            case .validator, .statistics: [rawValue]
            case .broker: ["rabbitmq"]
            case .database: ["postgres"]
            }
        }
    }

    /// Processes of each tier that scales.
    static let scale = 2
    /// Ports in a row that a stack takes.
    private static let portCount = 30

    let folder: URL
    let proxies: [FaultKind.Edge: [FaultProxy]]
    private let environment: [String: String]
    private let tenantPort: Int

    /// Where backends reach the APIs, through their proxies.
    var apis: [Int] { proxies[.backendToIngest, default: []].map(\.port) }
    /// Where devices reach the gateways, through their proxies.
    var gateways: [Int] { proxies[.deviceToGateway, default: []].map(\.port) }
    /// Where the servers are and who may look into them, as the tool reads it.
    var toolFile: String { folder.appending(path: "mssctl.json").path }
    var certificateAuthority: String { folder.appending(path: "tls/ca.pem").path }
    /// Where validators reach the tenant.
    var tenantURL: String { "http://127.0.0.1:\(proxies[.validatorToTenant]?.first?.port ?? 0)/session/validate" }

    /// Makes the proxies and starts everything.
    ///
    /// - Parameters:
    ///   - folder: for all that the stack keeps.
    ///   - build: `release` or `debug`.
    static func start(in folder: URL, build: String) async throws -> TortureStack {
        let ports = try await output(of: ["deploy/scripts/free-ports.sh", "\(portCount)"], in: folder)
        guard let first = Int(ports.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw ValidationError("no free ports: \(ports)")
        }
        let (api, device, postgres, rabbit, tenant) = (first, first + 4, first + 9, first + 10, first + 13)
        var environment = ProcessInfo.processInfo.environment.filter { !$0.key.hasPrefix("MSS_") }
        environment["MSS_STACK_FOLDER"] = folder.path
        environment["MSS_STACK_CONFIGURATION"] = build
        for (name, port) in [
            "API": api, "DEVICE": device, "CONSOLE": first + 8, "POSTGRES": postgres, "RABBITMQ": rabbit,
            "TENANT": tenant, "HEALTH": first + 14,
        ] { environment["MSS_STACK_\(name)_PORT"] = "\(port)" }
        var proxies: [FaultKind.Edge: [FaultProxy]] = [:]
        var settings: [String: [String]] = [:]
        for edge in FaultKind.Edge.allCases {
            let ends = edge.rawValue.split(separator: "-").map(String.init)
            switch ends[1] {
            case "ingest", "gateway":
                for number in 0..<scale {
                    let port = (ends[1] == "ingest" ? api : device) + number
                    proxies[edge, default: []].append(
                        try await .start("\(ends[0]) to \(ends[1])-\(number + 1)", before: port))
                }
            case "tenant": proxies[edge] = [try await .start("validator to tenant", before: tenant)]
            default:
                for process in Tier(rawValue: ends[0])?.processes(scale) ?? [] {
                    let proxy = try await FaultProxy.start(
                        "\(process) to \(ends[1])", before: edge.isAMQP ? rabbit : postgres,
                        speech: edge.isAMQP ? .amqp : .other)
                    proxies[edge, default: []].append(proxy)
                    settings[process, default: []].append(
                        "\(edge.isAMQP ? "MSS_AMQP_PORT" : "MSS_POSTGRES_PORT")=\(proxy.port)")
                }
            }
        }
        let stack = TortureStack(folder: folder, proxies: proxies, environment: environment, tenantPort: tenant)
        let allowed = "MSS_VALIDATOR_ALLOWED_HOSTS=http://127.0.0.1:\(proxies[.validatorToTenant]?.first?.port ?? 0)"
        settings["validator", default: []].append(allowed)
        let settingsFolder = folder.appending(path: "settings")
        try FileManager.default.createDirectory(at: settingsFolder, withIntermediateDirectories: true)
        for (process, lines) in settings {
            try (lines.joined(separator: "\n") + "\n").write(
                to: settingsFolder.appending(path: process), atomically: true, encoding: .utf8)
        }
        do {
            try await stack.deploy([
                "deploy/up", "--detach", "--plain", "--scale", "ingest=\(scale)", "--scale", "writer=\(scale)",
                "--scale",
                "gateway=\(scale)",
            ])
        } catch {
            await stack.stop()
            throw error
        }
        return stack
    }

    /// Ends everything; the folder stays.
    func stop() async {
        try? await deploy(["deploy/down"])
        for proxy in proxies.values.flatMap(\.self) { await proxy.stop() }
    }

    /// Creates instances and Sync IDs.
    func apply(_ controlFile: URL) async throws {
        let tool = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        try await deploy(["env", "MSS_CONFIG_FILE=\(toolFile)", tool, "apply", controlFile.path])
    }

    // MARK: Faults

    /// Sends a signal to a supervised process; the database's and its children's together.
    func signal(_ number: Int32, _ process: String) {
        guard let pid = pid(of: process) else { return }
        // A stopped server's children would go on working.
        if process == "postgres", number == SIGSTOP || number == SIGCONT {
            for child in ProcessTree().children(of: Int(pid)) { kill(pid_t(child), number) }
        }
        kill(pid, number)
    }

    /// The broker dies, and its disk is empty when it comes back.
    func wipeBroker() throws {
        guard let broker = pid(of: "rabbitmq"), let supervisor = number(in: "run/rabbitmq.supervisor") else { return }
        // So that it is not started again in the middle.
        kill(supervisor, SIGSTOP)
        defer { kill(supervisor, SIGCONT) }
        kill(broker, SIGKILL)
        let data = folder.appending(path: "rabbitmq/data")
        for name in try FileManager.default.contentsOfDirectory(atPath: data.path) {
            try? FileManager.default.removeItem(at: data.appending(path: name))
        }
    }

    /// Asks the broker's own tool.
    func broker(_ arguments: [String]) async throws {
        try await deploy(["deploy/scripts/rabbitmq.sh", "ctl", folder.appending(path: "rabbitmq").path] + arguments)
    }

    /// What the tenant says of a session from the return on.
    func endSession(_ session: String) async throws {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(tenantPort)/control")
        request.method = .POST
        request.body = .bytes(ByteBuffer(string: #"{"sessionId":"\#(session)","valid":false}"#))
        let status = try await HTTPClient.shared.execute(request, timeout: .seconds(20)).status
        guard status == .ok else { throw ValidationError("the tenant answered \(status)") }
    }

    private func pid(of process: String) -> pid_t? { number(in: "run/\(process).child") }

    /// Resident bytes of each process now, with its children.
    func memory() -> [String: Int] {
        let tree = ProcessTree()
        var bytes: [String: Int] = [:]
        for process in Tier.allCases.flatMap({ $0.processes(Self.scale) }) {
            bytes[process] = pid(of: process).map { tree.sample(Int($0), allocations: nil).residentBytes }
        }
        return bytes
    }

    private func number(in file: String) -> pid_t? {
        let text = try? String(contentsOf: folder.appending(path: file), encoding: .utf8)
        return text?.split(whereSeparator: \.isWhitespace).first.flatMap { pid_t($0) }
    }

    // MARK: Programs

    private func deploy(_ command: [String]) async throws {
        _ = try await Self.output(of: command, environment: environment, in: folder)
    }

    /// Runs a program to its end.
    ///
    /// - Throws: with what it printed, unless it ends well.
    private static func output(
        of command: [String], environment: [String: String]? = nil, in folder: URL
    ) async throws -> String {
        let mark = UUID().uuidString
        let (output, errors) = (folder.appending(path: "\(mark).out"), folder.appending(path: "\(mark).err"))
        defer { for file in [output, errors] { try? FileManager.default.removeItem(at: file) } }
        let settings = environment.map { ["-i"] + $0.map { "\($0.key)=\($0.value)" } } ?? []
        let child = try ChildProcess(settings + command, output: output, errors: errors)
        guard await child.ends(within: .seconds(300)) else {
            child.signal(SIGKILL)
            throw ValidationError("\(command.joined(separator: " ")) does not end")
        }
        let texts = try [output, errors].map { try String(contentsOf: $0, encoding: .utf8) }
        guard child.status == 0 else { throw ValidationError(texts.joined()) }
        return texts[0]
    }
}
