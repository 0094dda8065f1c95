/// A loop of an app beside the connection, such as the synchronisation of a module's store. `SyncApp` runs it.
public struct SyncAppPart: Sendable {
    let name: String
    let userChanged: @Sendable (String?) async throws -> Void
    let networkChanged: @Sendable (NetworkPath) -> Void
    let run: @Sendable (SyncClient) async throws -> Void

    /// Creates a part.
    ///
    /// - Parameters:
    ///   - name: the name in log lines.
    ///   - userChanged: called at each sign-in with the user before the client binds it, and at each sign-out with nil.
    ///   - networkChanged: called with each report of the network, after the client.
    ///   - run: the loop, until its task is cancelled. After an error it is called again, 10 s later; when it returns,
    ///     the part has ended.
    public init(
        _ name: String, userChanged: @escaping @Sendable (String?) async throws -> Void = { _ in },
        networkChanged: @escaping @Sendable (NetworkPath) -> Void = { _ in },
        run: @escaping @Sendable (SyncClient) async throws -> Void
    ) {
        self.name = name
        self.userChanged = userChanged
        self.networkChanged = networkChanged
        self.run = run
    }

    /// Runs the loops of a part at once, and returns when all have ended. When one throws, the others are cancelled and
    /// its error is thrown.
    package static func runTogether(_ loops: @Sendable () async throws -> Void...) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for loop in loops { group.addTask { try await loop() } }
            // `waitForAll` would wait for the other loops before it throws.
            for try await _ in group {}
        }
    }
}
