import ArgumentParser

/// `mssctl conformance client`: a scripted gateway, good and bad, against a client program.
struct ClientConformanceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "client", abstract: "Checks a client program.")
    func run() async throws {}
}
