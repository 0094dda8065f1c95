import ArgumentParser
import LocalEntities

/// `duty`: a technician comes or goes.
struct DutyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "duty", abstract: "Says whether a technician is on duty.")

    /// Here or not.
    enum Word: String, ExpressibleByArgument, CaseIterable {
        case on, off
    }

    @OptionGroup var folder: FolderOption
    @Argument(help: "The technician's key.")
    var technician: String
    @Argument(help: "on or off.")
    var word: Word

    func run() async throws {
        let device = try folder.device()
        guard var row = try device.entities.findByPrimaryKey(Technician.self, .text(technician)) else {
            throw FieldError("there is no technician \(technician)")
        }
        row.isOnDuty = word == .on
        try device.entities.update(&row)
        try await device.entities.submitPending(&row)
        print("technician \(technician): \(row.record.words)")
    }
}
