import ArgumentParser
import LocalEntities

/// `report`: reports a new incident.
struct ReportCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(commandName: "report", abstract: "Reports an incident.")

    @OptionGroup var folder: FolderOption
    @Argument(help: "A new key for the incident.")
    var incident: String
    @Argument(help: "The title of the incident.")
    var title: String

    func run() async throws {
        let device = try folder.device()
        var row = try device.entities.create(Incident(id: incident, title: title))
        try await device.entities.submitPending(&row)
        print("incident \(incident): \(row.record.summary)")
    }
}
