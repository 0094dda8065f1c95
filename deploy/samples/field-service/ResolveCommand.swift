import ArgumentParser
import LocalEntities
import OfflineResources

/// `resolve`: ends a conflict with one of the two versions.
struct ResolveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "resolve", abstract: "Ends a conflict.",
        discussion: "The next sync sends my version as a change of theirs.")

    /// The kind of the conflict's object.
    enum Thing: String, ExpressibleByArgument, CaseIterable {
        case incident, photo
    }

    /// The version that is kept.
    enum Choice: String, ExpressibleByArgument, CaseIterable {
        case mine, theirs
    }

    @OptionGroup var folder: FolderOption
    @Argument(help: "incident or photo.")
    var thing: Thing
    @Argument(help: "The incident's key.")
    var incident: String
    @Argument(help: "mine or theirs.")
    var choice: Choice

    func run() async throws {
        let device = try folder.device()
        switch thing {
        case .photo:
            try await device.resources.resolveConflict(
                FieldDevice.photo(of: incident), choice == .mine ? .keepMine : .takeTheirs)
        case .incident:
            var row = try device.incident(incident)
            guard row.state.replayFailure > 0 else { throw FieldError("incident \(incident) has no conflict") }
            switch choice {
            case .mine: try await device.entities.submitPending(&row)
            case .theirs: try await device.entities.cancelPending(&row)
            }
        }
        print("\(thing.rawValue) \(incident): \(choice.rawValue)")
    }
}
