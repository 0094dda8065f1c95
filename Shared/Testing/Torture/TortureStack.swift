import ArgumentParser
import AsyncHTTPClient
import ChildProcesses
import Foundation
import Glibc
import NIOCore
import NIOHTTP1
import ToolSupport

/// A separate local stack for a torture run, started by `deploy/up` of the checkout. It has two of each process that
/// scales, and a fault proxy for each server and each of its clients.
struct TortureStack: Sendable {
    /// A group of processes that a fault can affect.
    enum Tier: String, Sendable, CaseIterable {
        case ingest, writer, gateway, relay, validator, statistics, broker, database

        /// Names of the processes, as their supervisors use them.
        func processes(_ scale: Int) -> [String] {
            switch self {
            case .ingest, .writer, .gateway, .relay: (1...scale).map { "\(rawValue)-\($0)" }
            case .validator, .statistics: [rawValue]
            case .broker: ["rabbitmq"]
            case .database: ["postgres"]
            }
        }
    }

    /// Number of processes of each tier that scales.
    static let scale = 2
    static let diskTool = "deploy/faults/disk.sh"
    static let machineFaults = "deploy/faults/machine-faults.sh"

    let folder: URL
    let proxies: [FaultKind.Edge: [FaultProxy]]
    /// Environment of the programs that the stack starts.
    let environment: [String: String]
    let tenantPort: Int
    /// File that contains the database's disk. The value is nil without a separate disk.
    let diskFile: URL?

    /// Ports of the ingest processes, through their proxies.
    var apis: [Int] { proxies[.backendToIngest, default: []].map(\.port) }
    /// Ports of the gateways, through their proxies.
    var gateways: [Int] { proxies[.deviceToGateway, default: []].map(\.port) }
    /// Settings file of the tool, with addresses and credentials.
    var toolFile: String { folder.appending(path: "mssctl.json").path }
    var certificateAuthority: String { folder.appending(path: "tls/ca.pem").path }
    /// Endpoint of the tenant for validators, through the proxy.
    var tenantURL: String { "http://127.0.0.1:\(proxies[.validatorToTenant]?.first?.port ?? 0)/session/validate" }

    /// Origin of the tenant for relays, through the proxy.
    var operationsOrigin: String { "http://127.0.0.1:\(proxies[.relayToTenant]?.first?.port ?? 0)" }
    var operationsURL: String { "\(operationsOrigin)/operations" }

    /// Stops everything. The folder remains.
    func stop() async {
        try? await deploy(["deploy/down"])
        if diskFile != nil { try? await disk("unmount") }
        for proxy in proxies.values.flatMap(\.self) { await proxy.stop() }
    }

    /// Creates instances and configurations.
    func apply(_ controlFile: URL) async throws {
        let tool = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        try await deploy(["env", "MSS_CONFIG_FILE=\(toolFile)", tool, "apply", controlFile.path])
    }

    // MARK: Faults

    /// Sends a signal to a supervised process. SIGSTOP and SIGCONT also go to the database's children.
    func signal(_ number: Int32, _ process: String) {
        guard let pid = pid(of: process) else { return }
        // With SIGTERM, PostgreSQL waits for its clients to disconnect and accepts no new ones. Operators restart it
        // with SIGINT, as pg_ctl does.
        let number = process == "postgres" && number == SIGTERM ? SIGINT : number
        // Otherwise the children of a stopped server continue to run.
        if process == "postgres", number == SIGSTOP || number == SIGCONT {
            for child in ProcessTree().children(of: Int(pid)) { kill(pid_t(child), number) }
        }
        kill(pid, number)
    }

    /// Kills the broker and empties its disk.
    func wipeBroker() throws {
        guard let broker = pid(of: "rabbitmq"), let supervisor = number(in: "run/rabbitmq.supervisor") else { return }
        // The supervisor must not restart the broker before the disk is empty.
        kill(supervisor, SIGSTOP)
        defer { kill(supervisor, SIGCONT) }
        kill(broker, SIGKILL)
        let data = folder.appending(path: "rabbitmq/data")
        for name in try FileManager.default.contentsOfDirectory(atPath: data.path) {
            try? FileManager.default.removeItem(at: data.appending(path: name))
        }
    }

    /// Sets the machine faults of a process: the offset of the wall clock, and the additional time of a flush.
    func setMachine(of process: String, clock: Duration = .zero, flush: Duration = .zero) async throws {
        try await deploy([
            Self.machineFaults, "set", Self.machineFile(of: process, in: folder),
            "\(Int64(clock / .milliseconds(1)))", "\(Int64(flush / .milliseconds(1)))",
        ])
    }

    /// Executes a command of `disk.sh` on the database's disk.
    func disk(_ verb: String) async throws {
        try await deploy([Self.diskTool, verb, folder.appending(path: "postgres").path])
    }

    /// Switches the power of the database's machine `off` or `on`.
    func power(_ verb: String) async throws {
        let disk = verb == "on" ? diskFile.map { [$0.path] } ?? [] : []
        try await deploy(["deploy/faults/database-power.sh", verb] + disk)
    }

    static func machineFile(of process: String, in folder: URL) -> String {
        folder.appending(path: "machines/\(process)").path
    }

    /// Calls the broker's command-line tool.
    func broker(_ arguments: [String]) async throws {
        try await deploy(["deploy/scripts/rabbitmq.sh", "ctl", folder.appending(path: "rabbitmq").path] + arguments)
    }

    /// Makes the tenant refuse a session from the return of this call on.
    func endSession(_ session: String) async throws {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(tenantPort)/control")
        request.method = .POST
        request.body = .bytes(ByteBuffer(string: #"{"sessionId":"\#(session)","valid":false}"#))
        let status = try await HTTPClient.shared.execute(request, timeout: .seconds(20)).status
        guard status == .ok else { throw ValidationError("the tenant answered \(status)") }
    }

    private func pid(of process: String) -> pid_t? { number(in: "run/\(process).child") }

    /// Resident bytes of each process with its children.
    func memory() -> [String: Int] {
        let tree = ProcessTree()
        var bytes: [String: Int] = [:]
        for process in Tier.allCases.flatMap({ $0.processes(Self.scale) }) {
            bytes[process] = pid(of: process).map { tree.sample(Int($0), calls: nil).residentBytes }
        }
        return bytes
    }

    private func number(in file: String) -> pid_t? {
        let text = try? String(contentsOf: folder.appending(path: file), encoding: .utf8)
        return text?.split(whereSeparator: \.isWhitespace).first.flatMap { pid_t($0) }
    }

    // MARK: Programs

    func deploy(_ command: [String]) async throws {
        _ = try await ChildProcess.output(of: command, environment: environment, in: folder)
    }
}
