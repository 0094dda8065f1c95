import ArgumentParser

/// The field service app in a terminal, and the backend of the app.
@main
struct FieldService: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mss-field-service",
        abstract: "A sample of Mobile Sync Service: incidents, a conversation and photos, also offline.",
        discussion: "See deploy/samples/field-service.", subcommands: [AppCommand.self, BackendCommand.self])
}
