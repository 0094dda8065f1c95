import ClientServices
import Foundation
import Logging
import MobileSync

/// An app with client services on a device of the running system. A second object on the same files is a restart.
final class ServiceDevice: Sendable {
    let client: SyncClient
    let switches: ConfigurationSwitches
    let badges: Badges
    let stores: UserStores
    private let taps: BadgeTapOperations
    private let logger = Logger(label: "device") { _ in SwiftLogNoOpLogHandler() }

    init(_ stack: Stack, device: String, gateway: Int = 0) throws {
        client = try SyncClient(
            configuration: SyncClientConfiguration(
                host: "127.0.0.1", port: stack.gateways[gateway], instanceID: Stack.clientInstance, deviceID: device,
                storePath: stack.folder.appending(path: "\(device)-sync.sqlite").path,
                trust: .certificateAuthority(file: stack.certificateAuthority)),
            logger: logger)
        let store = try ServiceStore(folder: stack.folder.appending(path: "\(device)-services"))
        taps = BadgeTapOperations(client: client, logger: logger)
        switches = try ConfigurationSwitches(store: store)
        badges = try Badges(store: store, reporter: taps, logger: logger)
        stores = try UserStores(store: store)
    }

    /// Signs a user in at the client and at every service.
    func signIn(_ userID: String) throws {
        try client.bind(userID: userID, sessionID: "session")
        try stores.signIn(userID: userID)
        try badges.show(userID: userID)
    }

    /// Runs everything while the body runs.
    func running(_ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [client] in try await client.run() }
            group.addTask { [self] in try await client.feed(switches, of: ConfigurationSwitches.syncID, logger: logger)
            }
            group.addTask { [self] in try await client.feed(badges, of: Badges.syncID, logger: logger) }
            group.addTask { [taps] in try await taps.run() }
            try await body()
            group.cancelAll()
        }
    }
}
