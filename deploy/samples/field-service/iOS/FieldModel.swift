// Not compiled here: SwiftUI needs Apple's SDK.
import Foundation
import LocalEntities
import Logging
import MobileSync
import OfflineResources
import SwiftUI

/// The state of the views. Its loops run while a user is signed in.
@MainActor final class FieldModel: ObservableObject {
    @Published private(set) var app: FieldApp?
    @Published private(set) var user = ""
    @Published private(set) var incidents: [EntityRow<Incident>] = []
    /// Newest first, without a gap.
    @Published private(set) var messages: [SyncOplog] = []
    @Published private(set) var unread = 0
    @Published private(set) var isConnected = false
    /// The progress of each photo that is being sent, 0 to 1, by incident.
    @Published private(set) var progress: [String: Double] = [:]
    @Published var isFailed = false
    private(set) var failure = ""
    private var device: FieldDevice?
    private let logger = Logger(label: "field")

    // MARK: Start, sign in

    /// Opens the installation, and signs the user of the last run in again, also without a network.
    func open() async {
        await reporting {
            let device = try self.device ?? makeDevice()
            self.device = device
            // A second window shows the same app.
            guard app == nil, let (user, session) = try device.signedIn() else { return }
            try await show(user, session, on: device)
        }
    }

    func signIn(_ user: String) async {
        await reporting {
            guard let device else { return }
            try await show(user, try await device.signIn(user), on: device)
        }
    }

    func signOut() async {
        await reporting { try await app?.signOut() }
        app = nil
        user = ""
    }

    private func show(_ user: String, _ session: String, on device: FieldDevice) async throws {
        app = try await FieldApp(user: user, session: session, on: device)
        self.user = user
    }

    private func makeDevice() throws -> FieldDevice {
        let folder = URL.applicationSupportDirectory.appending(path: "field")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for name in ["meta.config", "mss-ca.pem"] {
            let copy = folder.appending(path: name)
            guard !FileManager.default.fileExists(atPath: copy.path),
                let original = Bundle.main.url(forResource: name, withExtension: nil)
            else { continue }
            try FileManager.default.copyItem(at: original, to: copy)
        }
        return try FieldDevice(folder: folder, address: "https://backend.example.com", logger: logger)
    }

    // MARK: Live data

    /// Follows everything that the views show, until the view that runs it disappears.
    func follow(_ app: FieldApp) async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.reporting { try await app.showIncidents { await self.set($0) } } }
            group.addTask { await self.reporting { try await app.showMessages { await self.add(newest: $0) } } }
            group.addTask { await app.showUnread { count in await MainActor.run { self.unread = count } } }
            group.addTask { await self.followConnection(of: app) }
            for (id, photo) in (try? app.waitingPhotos()) ?? [:] {
                group.addTask { await self.send(photo, of: id) }
            }
        }
    }

    private func set(_ incidents: [EntityRow<Incident>]) { self.incidents = incidents }

    private func followConnection(of app: FieldApp) async {
        let events = app.sync.client.events
        isConnected = app.sync.client.status == .connected
        for await event in events {
            if case .status(let status) = event { isConnected = status == .connected }
        }
    }

    private func add(newest page: [SyncOplog]) {
        let known = Set(page.map(\.oplogID))
        let isContinued = messages.contains { known.contains($0.oplogID) }
        messages = page + (isContinued ? messages.filter { !known.contains($0.oplogID) } : [])
    }

    // MARK: Tasks of the user

    func loadOlder() async {
        await reporting {
            guard let app, let oldest = messages.last else { return }
            let page = try await app.messages(before: oldest.oplogID)
            let known = Set(messages.map(\.oplogID))
            messages += page.filter { !known.contains($0.oplogID) }
        }
    }

    func send(_ photo: WaitingPhoto, of id: String) async {
        progress[id] = 0
        await reporting {
            try await app?.send(photo, of: id) { step in
                Task { @MainActor in self.progress[id] = step.fraction ?? 0 }
            }
        }
        progress[id] = nil
    }

    /// Performs a task, and shows its error.
    func reporting(_ body: () async throws -> Void) async {
        do {
            try await body()
        } catch {
            failure = "\(error)"
            isFailed = true
        }
    }
}
