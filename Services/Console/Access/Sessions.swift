import Logging
import SyncModel
import SyncStore

/// Who is signed in: sessions are in the database, so that a sign-out at one console holds at all of them.
struct Sessions: Sendable {
    let database: Database

    /// Who shows a token; nil: nobody, or no longer.
    ///
    /// - Parameters:
    ///   - source: the address that the request comes from.
    ///   - isSignOfLife: what a page does by itself is none: its session ends as if it were closed.
    func visitor(
        _ shown: (token: SessionToken, proof: Visitor.Proof)?, from source: String, isSignOfLife: Bool = true
    ) async throws(ConsoleFault) -> Visitor? {
        guard let shown else { return nil }
        let digest = shown.token.digest
        guard let session = try await database.run(ConsoleSessionStore.session(digest)) else { return nil }
        if session.isStale, isSignOfLife { try await database.run(ConsoleSessionStore.touch(digest)) }
        return Visitor(
            account: session.account, token: shown.token, proof: shown.proof, isConfirmed: session.isConfirmed,
            source: source)
    }

    /// Begins a session, and records it, with a token of its own: one that was there before the sign-in is worth nothing.
    func begin(_ account: String, from source: String) async throws(ConsoleFault) -> SessionToken {
        let token = SessionToken()
        let actor = OperationActor("console:\(account)", from: source)
        try await database.run(ConsoleSessionStore.begin(token.digest, of: account, by: actor))
        return token
    }
}
