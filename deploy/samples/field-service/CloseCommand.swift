import ArgumentParser
import LocalEntities

/// `close`: closes an incident.
struct CloseCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "close", abstract: "Closes an incident.")

    @OptionGroup var folder: FolderOption
    @Argument(help: "The incident's key.")
    var incident: String

    func run() async throws { try await folder.device().change(incident) { $0.status = "closed" } }
}
