import ClientServices
import Foundation
import LocalEntities
import Logging
import MobileSync
import OfflineResources

/// The installation of the app on one device: its folder, its backend, and what all its users share.
struct FieldDevice: Sendable {
    let folder: URL
    /// The app's own backend.
    let backend: HTTPResourceTransport
    let services: ServiceStore
    let stores: UserStores
    let logger: Logger

    /// Opens the installation, without a network.
    ///
    /// - Parameters:
    ///   - folder: a folder with `meta.config`, and `mss-ca.pem` for a private authority.
    ///   - address: the address of the app's backend, such as `http://127.0.0.1:7195`.
    init(folder: URL, address: String, logger: Logger) throws {
        self.folder = folder
        self.logger = logger
        backend = try HTTPResourceTransport(baseURL: address)
        services = try ServiceStore(folder: folder)
        stores = try UserStores(store: services)
    }

    func makeClient() throws -> SyncClient {
        try MetaConfig(contentsOf: folder.appending(path: "meta.config")).makeClient(in: folder, logger: logger)
    }

    func entities(of user: String) throws -> EntityStoreConfiguration {
        EntityStoreConfiguration(
            path: folder.appending(path: "entities-\(user).sqlite").path,
            schema: try EntitySchema([Incident.entityType]), userID: user)
    }

    var photos: ResourceConfiguration {
        ResourceConfiguration(storePath: folder.appending(path: "photos.sqlite").path)
    }

    // MARK: The signed-in user

    /// The signed-in user, also after a restart; nil: none.
    func signedIn() throws -> (user: String, session: String)? {
        guard let user = stores.lastUserID, let session: String = try stores.user?.value("session") else { return nil }
        return (user, session)
    }

    /// Signs a user in at the backend, and stores the session. An app on a phone keeps it in the key chain. This
    /// sample's backend asks for no password.
    ///
    /// - Returns: the session.
    func signIn(_ user: String) async throws -> String {
        guard let answer = try? await backend.send(ResourceRequest(method: "GET", uri: "/sessions/\(user)")) else {
            throw FieldError("the backend does not answer; signing in needs a network")
        }
        guard answer.status == 200 else { throw FieldError("the backend does not know the user \(user)") }
        let session = String(decoding: answer.body, as: UTF8.self)
        try stores.signIn(userID: user)
        try stores.user?.set(session, for: "session")
        return session
    }

    func forgetSession() throws {
        try stores.user?.remove(["session"])
        stores.signOut()
    }
}
