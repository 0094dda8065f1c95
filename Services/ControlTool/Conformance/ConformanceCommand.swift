import ArgumentParser

/// `mssctl conformance`: whether an implementation does what DeviceProtocol.md says.
struct ConformanceCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "conformance",
        abstract: "Checks an implementation of the device protocol against its text, rule by rule.",
        subcommands: [GatewayConformanceCommand.self, ClientConformanceCommand.self])
}
