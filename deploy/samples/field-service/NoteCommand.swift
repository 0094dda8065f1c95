import ArgumentParser
import LocalEntities

/// `note`: writes a note on an incident.
struct NoteCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "note", abstract: "Writes a note on an incident.")

    @OptionGroup var folder: FolderOption
    @Argument(help: "The incident's key.")
    var incident: String
    @Argument(help: "The note; it replaces the former one.")
    var text: String

    func run() async throws { try await folder.device().change(incident) { $0.note = text } }
}
