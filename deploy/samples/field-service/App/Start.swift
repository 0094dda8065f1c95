import ClientServices
import LocalEntities
import Logging
import MobileSync
import OfflineResources

/// Start, sign in, change the network.
extension FieldApp {
    init(user: String, session: String, on device: FieldDevice) async throws {
        let (client, logger) = (try device.makeClient(), device.logger)
        self.device = device
        entities = try EntityStore(device.entities(of: user), submitter: client)
        resources = try ResourceClient(configuration: device.photos, transport: device.backend, logger: logger)
        let taps = BadgeTapOperations(client: client, logger: logger)
        badges = try Badges(store: device.services, reporter: taps, logger: logger)
        let parts = [SyncAppPart.entities(entities, logger: logger), .resources(resources, logger: logger)]
        let others = [SyncAppPart.badges(badges, logger: logger), Self.reading, Self.answers]
        sync = SyncApp(client: client, parts: parts + others, logger: logger)
        try await sync.signIn(userID: user, sessionID: session)
        sync.start()
    }

    func networkChanged(to path: NetworkPath) { sync.networkChanged(to: path) }

    /// Signs out. The user's data stays on the device and waits for the next sign-in.
    func signOut() async throws {
        try device.forgetSession()
        do { try await sync.signOut() } catch { device.logger.error("\(error)") }
        await sync.stop()
    }
}
