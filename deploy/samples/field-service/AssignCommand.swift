import ArgumentParser
import LocalEntities

/// `assign`: assigns an incident to a technician.
struct AssignCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "assign", abstract: "Assigns an incident to a technician.")

    @OptionGroup var folder: FolderOption
    @Argument(help: "The incident's key.")
    var incident: String
    @Argument(help: "The technician's key.")
    var technician: String

    func run() async throws {
        let device = try folder.device()
        guard try device.entities.findByPrimaryKey(Technician.self, .text(technician)) != nil else {
            throw FieldError("there is no technician \(technician)")
        }
        try await device.change(incident) { row in
            row.technician = technician
            row.status = "assigned"
        }
    }
}
