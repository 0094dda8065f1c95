import AMQP
import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import PostgreSQL
import TestSupport

/// The whole service on real servers of its own: PostgreSQL, RabbitMQ, two of each process that scales, a tenant.
///
/// One stack serves all tests of a run; each test has users of its own.
final class Stack: Sendable {
    static let instance = "demo_app"
    /// The instance for global pushes: devices of other tests must not receive them.
    static let globalInstance = "global_app"
    /// An instance whose tenant is called through a mobile gateway.
    static let mobileGatewayInstance = "space_gateway"
    /// An instance whose tenant executes device operations.
    static let operationInstance = "operations_app"

    /// An instance whose apps use entities, resources and client services.
    static let clientInstance = "client_app"

    let apis: [Int]
    let gateways: [Int]
    let certificateAuthority: String
    /// The port of the canary run's tenant.
    let canaryTenantPort: Int
    let folder: URL
    private let plan: StackPlan
    let healthPorts: [Int]
    let processes: [Supervised]

    private init(plan: StackPlan, folder: URL, processes: [Supervised]) {
        self.plan = plan
        apis = plan.apis
        gateways = plan.gateways
        certificateAuthority = plan.certificateAuthority
        canaryTenantPort = plan.settings.canaryTenantPort
        healthPorts = plan.healthPorts
        self.folder = folder
        self.processes = processes
    }

    /// The port of a test's tenant for device operations.
    var operationsPort: Int { plan.settings.operationsPort }

    /// The port of the console.
    var consolePort: Int { plan.settings.consolePort }

    /// Returns the process with this name.
    func process(_ name: String) throws -> Supervised {
        try requireValue(processes.first { $0.name == name }, "no process \(name)")
    }

    /// Returns a notifier with these settings; not started.
    func notifier(_ settings: [String: String]) -> Supervised { plan.notifier(settings) }

    /// Returns a standby of the database for this port; not started.
    func standby(port: Int) async throws -> Supervised { try await plan.standby(port: port) }

    /// Replaces the database's data by the standby's; neither may run.
    func takeOver() throws { try plan.takeOver() }

    /// Runs a statement as the database's owner. Returns the output.
    ///
    /// - Parameter port: of the server; nil: of the server that the service uses.
    func ask(_ statement: String, port: Int? = nil) async throws -> String {
        let outcome = try await Command.run(
            URL(fileURLWithPath: "/usr/bin/psql"),
            [
                "-X", "-qAt", "-h", "127.0.0.1", "-p", "\(port ?? plan.settings.postgresPort)", "-U", "mss", "-c",
                statement, "mss",
            ], environment: ["PATH": "/usr/bin:/bin"])
        guard outcome.status == 0 else { throw Failure("\(statement): \(outcome.output)") }
        return outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Returns a connection description of the service's database, for checks.
    func database() -> TestDatabase {
        TestDatabase(
            PostgresConfiguration(
                host: "127.0.0.1", port: plan.settings.postgresPort, database: "mss", user: "mss",
                security: TestHost.areSeparate ? PostgresSecurity(authorityFile: certificateAuthority) : nil),
            hasTiers: true)
    }

    /// The database address for psql, as the owner.
    var databaseAddress: String { "host=127.0.0.1 port=\(plan.settings.postgresPort) dbname=mss user=mss" }

    /// The faulty tenants, and the port to which they try to lead calls.
    var badTenants: (table: BadTenants, forbiddenPort: Int) { (plan.badTenants, plan.settings.forbiddenPort) }

    /// The broker's configuration as a tier's user, for a test that plays the tier.
    func broker(as tier: String) throws -> AMQPConfiguration {
        AMQPConfiguration(
            host: "localhost", port: plan.settings.rabbitPort, user: tier, password: try plan.password(of: tier),
            security: TestHost.areSeparate ? AMQPSecurity(authorityFile: certificateAuthority) : nil)
    }

    /// The URL of the tenant's session checks.
    var validatorURL: String { "http://127.0.0.1:\(plan.settings.tenantPort)/session/validate" }

    /// Sets the tenant's answer for a session.
    func setTruth(of session: String, _ isValid: Bool) async throws {
        var request = HTTPClientRequest(url: "http://127.0.0.1:\(plan.settings.tenantPort)/control")
        request.method = .POST
        request.body = .bytes(ByteBuffer(string: #"{"sessionId":"\#(session)","valid":\#(isValid)}"#))
        let status = try await HTTPClient.shared.execute(request, timeout: .seconds(5)).status
        guard status == .ok else { throw Failure("the tenant answered \(status)") }
    }

    /// Sends a GET request. Returns the response.
    func get(_ url: String) async throws -> (status: UInt, body: String) {
        let response = try await HTTPClient.shared.execute(HTTPClientRequest(url: url), timeout: .seconds(5))
        return (response.status.code, String(buffer: try await response.body.collect(upTo: 1 << 20)))
    }

    /// Runs `mssctl` against this stack.
    func tool(_ arguments: [String]) async throws -> (status: Int32, output: String) {
        try await plan.tool(arguments)
    }

    /// Creates the missing certificates.
    func makeCertificates() async throws { try await plan.makeCertificates() }

    /// Stops all processes.
    func stop() {
        for process in processes.reversed() { process.stop() }
        // The setting keeps the folder, for a look at the logs.
        if ProcessInfo.processInfo.environment["MSS_TEST_KEEP"] == nil {
            try? FileManager.default.removeItem(at: folder)
        }
    }

    /// Whether every process of the service is ready.
    func isReady() async -> Bool {
        for port in healthPorts {
            var request = HTTPClientRequest(url: "http://127.0.0.1:\(port)/readyz")
            request.method = .GET
            let status = try? await HTTPClient.shared.execute(request, timeout: .seconds(1)).status
            guard status == .ok else { return false }
        }
        return true
    }

    /// Starts everything and waits until it is ready.
    static func start() async throws -> Stack {
        let root = ProjectFolder.url
        let folder = URL(fileURLWithPath: NSTemporaryDirectory()).appending(path: "mss-stack-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let ports = try FreePorts.find(StackPlan.portCount)
        let plan = try await StackPlan(root: root, folder: folder, ports: ports)
        try await plan.makeServersAndCertificate()
        var started: [Supervised] = []
        do {
            for process in plan.servers {
                try process.start()
                started.append(process)
            }
            try await eventually("the servers answer", within: .seconds(60)) { await plan.serversAnswer() }
            try await plan.migrate()
            for process in plan.services {
                try process.start()
                started.append(process)
            }
            let stack = Stack(plan: plan, folder: folder, processes: started)
            try await plan.apply()
            try await eventually("the stack is ready", within: .seconds(60)) { await stack.isReady() }
            return stack
        } catch {
            for process in started.reversed() { process.stop() }
            throw error
        }
    }
}
