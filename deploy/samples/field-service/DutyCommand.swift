import ArgumentParser
import LocalEntities

/// `duty`: sets whether a technician is on duty.
struct DutyCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "duty", abstract: "Sets whether a technician is on duty.")

    /// On or off duty.
    enum State: String, ExpressibleByArgument, CaseIterable {
        case on, off
    }

    @OptionGroup var folder: FolderOption
    @Argument(help: "The technician's key.")
    var technician: String
    @Argument(help: "on or off.")
    var state: State

    func run() async throws {
        let device = try folder.device()
        guard var row = try device.entities.findByPrimaryKey(Technician.self, .text(technician)) else {
            throw FieldError("there is no technician \(technician)")
        }
        row.isOnDuty = state == .on
        try device.entities.update(&row)
        try await device.entities.submitPending(&row)
        print("technician \(technician): \(row.record.summary)")
    }
}
