import Foundation
import SyncStore

/// Migrated databases, one for each number of stores, of which test databases are copies: a copy takes less time than
/// the migrations. They stay until the test server is removed.
actor TestDatabaseTemplates {
    static let shared = TestDatabaseTemplates()

    private var names: [StoreLayout: String] = [:]
    private let turnstile = Turnstile(places: 1)

    /// The name of the database with the migrations for these stores. The first call makes it.
    func name(for stores: StoreLayout) async throws -> String {
        try await turnstile.pass {
            if let made = names[stores] { return made }
            let made = try await Self.make(stores)
            names[stores] = made
            return made
        }
    }

    private static func make(_ stores: StoreLayout) async throws -> String {
        let name = "template_\(UUID().uuidString.lowercased().replacing("-", with: ""))"
        let server = TestDatabase.ofServer()
        try await server.execute("CREATE DATABASE \(name)")
        await server.close()
        let database = TestDatabase.ofServer(name, stores: stores)
        _ = try await database.migrate(stores: stores)
        await database.close()
        return name
    }
}
