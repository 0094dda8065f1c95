import ArgumentParser
import Foundation

/// `mssctl conformance client`: a scripted gateway, good and bad, against a client program.
struct ClientConformanceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "client", abstract: "Checks a client program.",
        discussion: """
            The command stands behind --, with {host} {port} {ca} {instance} {device} {user} {session} {store} \
            {app-version} where the program takes these. It connects, binds the user, prints one JSON object per oplog, \
            confirms it, and runs until SIGTERM; started again with the same {store} it goes on.
            """)

    @Option(help: "Where scripted gateways listen; 0 takes free ports, any other runs one case at a time.")
    var port = 0
    @Option(help: "Arguments, separated by blanks, that make the program not confirm what it prints.")
    var noConfirmArguments: String?
    @OptionGroup var appKey: AppKeyOptions
    @OptionGroup var options: ConformanceOptions
    @Argument(help: "The program and its arguments.")
    var command: [String] = []

    /// Enough that the cases that wait do so together, and few enough that programs start quickly.
    private static let atOnce = 12

    func validate() throws {
        guard (0...65_535).contains(port) else { throw ValidationError("--port takes 0 to 65535.") }
        if command.isEmpty, !options.list { throw ValidationError("the client's command is missing, behind --") }
    }

    func run() async throws {
        let appKey = try appKey.key()
        let cases = try options.selected(of: ClientCases.all + (appKey == nil ? [] : ClientCases.signed))
        if options.list { return options.show(cases) }
        let bench = try await ClientBench(
            command: command, noConfirmArguments: noConfirmArguments?.split(separator: " ").map(String.init),
            port: port, appKey: appKey)
        let run = ConformanceRun<ClientStage>(
            atOnce: port == 0 ? options.atOnce ?? Self.atOnce : 1, prepare: { try await ClientStage(bench) },
            cleanUp: { await $0.end() })
        let results = await run.results(of: cases)
        try? FileManager.default.removeItem(at: bench.folder)
        try options.finish(results)
    }
}
