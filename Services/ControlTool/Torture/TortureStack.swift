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
        case ingest, writer, gateway, relay, validator, statistics, broker, database

        /// As their supervisors are named.
        func processes(_ scale: Int) -> [String] {
            switch self {
            case .ingest, .writer, .gateway, .relay: (1...scale).map { "\(rawValue)-\($0)" }
            case .validator, .statistics: [rawValue]
            case .broker: ["rabbitmq"]
            case .database: ["postgres"]
            }
        }
    }

    /// Processes of each tier that scales.
    static let scale = 2
    static let diskTool = "deploy/faults/disk.sh"
    static let machineFaults = "deploy/faults/machine-faults.sh"

    let folder: URL
    let proxies: [FaultKind.Edge: [FaultProxy]]
    /// Of the programs that it starts.
    let environment: [String: String]
    let tenantPort: Int
    /// The file that the database's disk is in; nil: it has none of its own.
    let diskFile: URL?

    /// Where backends reach the APIs, through their proxies.
    var apis: [Int] { proxies[.backendToIngest, default: []].map(\.port) }
    /// Where devices reach the gateways, through their proxies.
    var gateways: [Int] { proxies[.deviceToGateway, default: []].map(\.port) }
    /// Where the servers are and who may look into them, as the tool reads it.
    var toolFile: String { folder.appending(path: "mssctl.json").path }
    var certificateAuthority: String { folder.appending(path: "tls/ca.pem").path }
    /// Where validators reach the tenant.
    var tenantURL: String { "http://127.0.0.1:\(proxies[.validatorToTenant]?.first?.port ?? 0)/session/validate" }

    /// Where relays reach the tenant.
    var operationsOrigin: String { "http://127.0.0.1:\(proxies[.relayToTenant]?.first?.port ?? 0)" }
    var operationsURL: String { "\(operationsOrigin)/operations" }

    /// Ends everything; the folder stays.
    func stop() async {
        try? await deploy(["deploy/down"])
        if diskFile != nil { try? await disk("unmount") }
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
        // Its SIGTERM waits for everybody to leave and lets nobody in meanwhile; who restarts a server means SIGINT, as
        // pg_ctl does.
        let number = process == "postgres" && number == SIGTERM ? SIGINT : number
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

    /// The machine of a process has this from now on: a wall clock so far ahead, flushes that take so much longer.
    func setMachine(of process: String, clock: Duration = .zero, flush: Duration = .zero) async throws {
        try await deploy([
            Self.machineFaults, "set", Self.machineFile(of: process, in: folder),
            "\(Int64(clock / .milliseconds(1)))", "\(Int64(flush / .milliseconds(1)))",
        ])
    }

    /// Does something to the database's disk, as `disk.sh` names it.
    func disk(_ verb: String) async throws {
        try await deploy([Self.diskTool, verb, folder.appending(path: "postgres").path])
    }

    /// Turns the power of the database's machine `off` or `on`.
    func power(_ verb: String) async throws {
        let disk = verb == "on" ? diskFile.map { [$0.path] } ?? [] : []
        try await deploy(["deploy/faults/database-power.sh", verb] + disk)
    }

    static func machineFile(of process: String, in folder: URL) -> String {
        folder.appending(path: "machines/\(process)").path
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

    func deploy(_ command: [String]) async throws {
        _ = try await ChildProcess.output(of: command, environment: environment, in: folder)
    }
}
