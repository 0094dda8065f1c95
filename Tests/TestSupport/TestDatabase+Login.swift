import Foundation

extension TestDatabase {
    /// Runs the body as a new login, and removes the login afterwards.
    ///
    /// - Parameter role: the role of which the login is a member; nil for none.
    package nonisolated func withLogin(
        memberOf role: String?, _ body: (TestDatabase) async throws -> Void
    ) async throws {
        let name = "probe_\(UUID().uuidString.replacing("-", with: "").lowercased())"
        try await execute("CREATE ROLE \(name) LOGIN \(role.map { "IN ROLE \($0)" } ?? "")")
        let login = TestDatabase(database, user: name)
        var failure: (any Error)?
        do { try await body(login) } catch { failure = error }
        await login.close()
        try await execute("DROP ROLE \(name)")
        if let failure { throw failure }
    }
}
