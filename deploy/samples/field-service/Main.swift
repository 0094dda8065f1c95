import ArgumentParser

/// The data layer of a field service app on the command line: a device for each folder, and the tenant's backend.
@main
struct FieldService: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "mss-field-service",
        abstract: "A sample of Mobile Sync Service: incidents and technicians, also offline.",
        discussion: "Every command but sync and backend works without a network. See deploy/samples/field-service.",
        subcommands: [
            JoinCommand.self, ListCommand.self, ReportCommand.self, AssignCommand.self, NoteCommand.self,
            CloseCommand.self, DutyCommand.self, PhotoCommand.self, SyncCommand.self, ConflictsCommand.self,
            ResolveCommand.self, BackendCommand.self,
        ])
}
