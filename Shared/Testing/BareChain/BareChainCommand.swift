import AMQP
package import ArgumentParser
import DeviceProtocol
import PostgreSQL
import ServerTLS
import ServiceKit
import ToolSupport

/// `mssctl floor`: the processes of the bare chain.
///
/// The bare chain is the least that a durable push costs with our modules: HTTP, an AMQP body, an insert with its
/// commit, an AMQP body, a device over TLS, and its acknowledgement. It has no rules, presence, facts or figures.
/// `mssctl ratio` compares the service with it, on the same broker and database cluster and with the same load.
///
/// It runs beside a stack, in a virtual host and a database of its own. It is for measurements only: it listens on
/// loopback, checks no caller, and forgets everything at its end.
package struct BareChainCommand: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "floor", abstract: "Runs a process of the bare chain, for comparisons.", shouldDisplay: false,
        subcommands: [BareChainIngestCommand.self, BareChainWriterCommand.self, BareChainGatewayCommand.self])

    package init() {}
}

/// `mssctl floor ingest`.
struct BareChainIngestCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ingest", abstract: "Accepts single pushes over HTTP.", discussion: ToolSettings.amqpHint)

    @Option(help: "Port on loopback.")
    var port: Int

    func run() async throws {
        try await BareIngest(broker: BareChainSettings.broker("bare-ingest"), logger: ToolSettings.logger()).run(
            port: port)
    }
}

/// `mssctl floor writer`.
struct BareChainWriterCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "writer", abstract: "Stores pushes.", discussion: ToolSettings.amqpHint)

    @Option(help: "Microseconds of processor time that each push wastes, to test a comparison.")
    var wasteMicroseconds = 0

    func validate() throws {
        guard wasteMicroseconds >= 0 else { throw ValidationError("--waste-microseconds takes 0 or more") }
    }

    func run() async throws {
        let writer = BareWriter(
            broker: try BareChainSettings.broker("bare-writer"), database: try ToolSettings.databaseConfiguration(),
            wasted: .microseconds(wasteMicroseconds), logger: ToolSettings.logger())
        try await writer.run()
    }
}

/// `mssctl floor gateway`.
struct BareChainGatewayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "gateway", abstract: "Sends pushes to devices over TLS.", discussion: ToolSettings.amqpHint)

    @Option(help: "Port on loopback.")
    var port: Int
    @Option(help: "PEM file with the certificate.")
    var certificate: String
    @Option(help: "PEM file with the key of the certificate.")
    var privateKey: String

    func run() async throws {
        let certificates = try ServerCertificates(
            CertificateFiles(certificateFile: certificate, privateKeyFile: privateKey),
            applicationProtocols: [DeviceProtocolLimits.applicationProtocol], logger: ToolSettings.logger())
        try await BareGateway(logger: ToolSettings.logger()).run(
            port: port, tls: certificates.context, broker: try BareChainSettings.broker("bare-gateway"))
    }
}

/// The settings of the bare chain: those of the tool.
enum BareChainSettings {
    /// The broker of the settings.
    static func broker(_ connectionName: String) throws -> AMQPConfiguration {
        AMQPConfiguration(try ToolSettings.read(ProcessSettings.amqpKeys), connectionName: connectionName)
    }
}
