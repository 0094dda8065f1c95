import ArgumentParser
import Foundation
import LocalEntities
import MobileSync
import OfflineResources

/// `sync`: connects until everything has gone up and come down.
struct SyncCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync", abstract: "Sends what was changed, and takes what is new.",
        discussion: "Ends with 1 when that has not been done in time; nothing is lost by that.")

    @OptionGroup var folder: FolderOption
    @Option(help: "How long it may take, in seconds.")
    var seconds = 30

    func run() async throws {
        let device = try folder.device()
        device.resources.setOfflineMode(false)
        let isDone = try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await device.client.run()
                return false
            }
            group.addTask {
                try await EntitySynchroniser(store: device.entities, feed: device.client, logger: device.logger).run()
                return false
            }
            group.addTask {
                try await device.client.feed(device.resources, logger: device.logger)
                return false
            }
            group.addTask { [seconds] in
                try await Task.sleep(for: .seconds(seconds))
                return false
            }
            group.addTask {
                try await Self.exchange(device)
                return true
            }
            defer { group.cancelAll() }
            return try await group.next() ?? false
        }
        for line in Set(device.report.told).sorted() { print(line) }
        guard isDone else {
            print("offline: what is left goes with the next sync")
            throw ExitCode.failure
        }
        print("in sync")
    }

    /// Entities by the channel, photos by HTTP.
    private static func exchange(_ device: FieldDevice) async throws {
        while try await !isSettled(device) { try await Task.sleep(for: .milliseconds(50)) }
        let photos = try await device.resources.synchronise()
        if photos.applied > 0 { print("photos sent: \(photos.applied)") }
        if photos.conflicts > 0 { print("photos in conflict: \(photos.conflicts)") }
        // What was sent just now comes back as a push: its incident has another photo.
        while try await !isSettled(device) { try await Task.sleep(for: .milliseconds(50)) }
        for row in try device.entities.findAll(Incident.self) where row.photo != nil {
            _ = try await device.resources.fetchFile(FieldDevice.photo(of: row.id))
        }
    }

    /// Whether everything that was submitted has its answer, and everything that waits has come.
    private static func isSettled(_ device: FieldDevice) async throws -> Bool {
        guard device.client.isCaughtUp, try device.client.pendingOperations().isEmpty else { return false }
        for type in [Incident.entityType, Technician.entityType]
        where try device.entities.pendingRows(type.name).contains(where: { $0.state.replayPending > 0 }) {
            return false
        }
        return try await device.client.channelSummaries().allSatisfy { $0.unconfirmed == 0 && $0.notReceived == 0 }
    }
}
