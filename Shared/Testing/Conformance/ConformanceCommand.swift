package import ArgumentParser

/// `mssctl conformance`: checks an implementation against DeviceProtocol.md.
package struct ConformanceCommand: AsyncParsableCommand {
    package static let configuration = CommandConfiguration(
        commandName: "conformance",
        abstract: "Checks an implementation of the device protocol against the specification.",
        subcommands: [GatewayConformanceCommand.self, ClientConformanceCommand.self])

    package init() {}
}
