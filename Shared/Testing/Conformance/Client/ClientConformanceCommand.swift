import ArgumentParser
import Foundation
import ToolSupport

/// `mssctl conformance client`: a scripted gateway that checks a client program.
struct ClientConformanceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "client", abstract: "Checks a client program.",
        discussion: """
            The command follows --, with the placeholders {host} {port} {ca} {instance} {device} {user} {session} \
            {store} {app-version}. The program connects, binds the user, prints one JSON object per oplog, confirms \
            the oplog, and runs until SIGTERM. After a restart with the same {store} it continues.
            """)

    @Option(help: "Port of the scripted gateways; 0 for free ports, any other value runs one case at a time.")
    var port = 0
    @Option(help: "Arguments, separated by blanks, with which the program does not confirm.")
    var noConfirmArguments: String?
    @OptionGroup var appKey: AppKeyOptions
    @OptionGroup var options: ConformanceOptions
    @Argument(help: "The program and its arguments.")
    var command: [String] = []

    /// Enough that slow cases wait together, and few enough that programs start quickly.
    private static let atOnce = 12

    func validate() throws {
        guard (0...65_535).contains(port) else { throw ValidationError("--port must be 0 to 65535.") }
        if command.isEmpty, !options.list { throw ValidationError("the client's command is missing after --") }
    }

    func run() async throws {
        let appKey = try appKey.key()
        let cases = try options.selected(of: ClientCases.all + (appKey == nil ? [] : ClientSignatureCases.all))
        if options.list { return options.show(cases) }
        let bench = try await ClientBench(
            command: command, noConfirmArguments: noConfirmArguments?.split(separator: " ").map(String.init),
            port: port, appKey: appKey)
        let run = ConformanceRun<ClientCaseSetup>(
            atOnce: port == 0 ? options.atOnce ?? Self.atOnce : 1, prepare: { try await ClientCaseSetup(bench) },
            cleanUp: { await $0.end() })
        let results = await run.results(of: cases)
        try? FileManager.default.removeItem(at: bench.folder)
        try options.finish(results)
    }
}
