import SyncModel

/// Logins with a password, also without a network.
///
/// The password stays on the device: the app signs in at its own backend and gets the user session. The client stores
/// the session of the last good login of each user, encrypted with a key that only the password gives.
public struct SyncLogin: Sendable {
    private let client: SyncClient

    /// Makes the logins of a client.
    public init(_ client: SyncClient) { self.client = client }

    /// Signs in, binds the user, and waits for the gateway's answer. When the gateway accepts the user, the client
    /// stores the login for `offlineLogin`.
    ///
    /// - Parameters:
    ///   - userID: the user, as for `bind`.
    ///   - password: the password that `offlineLogin` checks.
    ///   - limit: the longest wait for the gateway's answer; 30 s by default.
    ///   - signIn: signs in at the app's backend, and returns the session id for `bind`.
    /// - Throws: the errors of `signIn`, and `CancellationError`; `SyncError`: `login` when the gateway refuses the
    ///   user or does not answer in time, for example without a network; `invalidArgument`, as `bind`. After such an
    ///   answer no user is bound.
    public func onlineLogin(
        userID: String, password: String, within limit: Duration = .seconds(30), signIn: () async throws -> String
    ) async throws {
        let sessionID = try await signIn()
        try await prepare(userID: userID, password: password, sessionID: sessionID)
        let events = client.events
        try client.bind(userID: userID, sessionID: sessionID)
        do {
            try await answer(to: BoundUser(userID: userID, sessionID: sessionID), in: events, within: limit)
        } catch {
            if client.sharedState.user?.userID.isSame(as: userID) == true { client.unbind() }
            throw error
        }
    }

    /// Begins an online login with a user session, and returns. The answer arrives as `SyncEvent.bound` or
    /// `.bindRefused`, also after days without a network. The user is bound meanwhile. The login is stored only by the
    /// process that began it: after a restart of the app, call it again.
    ///
    /// - Throws: `SyncError`: `invalidArgument`, as `bind`; `login` when there is too little memory.
    public func beginOnlineLogin(userID: String, password: String, sessionID: String) async throws(SyncError) {
        try await prepare(userID: userID, password: password, sessionID: sessionID)
        try client.bind(userID: userID, sessionID: sessionID)
    }

    /// Prepares the login that the client stores when the gateway accepts the bind.
    @concurrent
    private func prepare(userID: String, password: String, sessionID: String) async throws(SyncError) {
        let seal = try PasswordSeal(
            sessionID: sessionID, of: userID, password: password, rounds: client.loginRounds)
        await client.engine.prepareLogin(seal, of: BoundUser(userID: userID, sessionID: sessionID))
    }

    /// Verifies the password against the user's last good login, without a network, and binds that user with the
    /// session of that login. The user's data on the device is then available, and new data arrives while the session
    /// is valid.
    ///
    /// Ten wrong passwords in a row delete the stored login; only `onlineLogin` helps then.
    ///
    /// - Throws: `SyncError`: `login` for a wrong password, for a user without a good login on this device, and when
    ///   there is too little memory; `store`.
    @concurrent
    public func offlineLogin(userID: String, password: String) async throws(SyncError) {
        guard let seal = try await client.engine.beginLoginAttempt(of: userID) else {
            throw SyncError(.login, "no good login of this user is known on this device; use onlineLogin")
        }
        let session: String?
        do throws(SyncError) {
            session = try seal.session(of: userID, password: password)
        } catch {
            try await client.engine.withdrawLoginAttempt(of: userID)
            throw error
        }
        guard let sessionID = session else {
            throw SyncError(.login, "the password is not that of the last good login; correct it, or use onlineLogin")
        }
        try await client.engine.loginSucceeded(userID)
        try client.bind(userID: userID, sessionID: sessionID)
    }

    /// Logs in for synchronisation: offline if the password is that of the last good login, otherwise online.
    ///
    /// - Throws: as `onlineLogin`; `SyncError.store`.
    public func loginToSync(
        userID: String, password: String, within limit: Duration = .seconds(30), signIn: () async throws -> String
    ) async throws {
        do {
            try await offlineLogin(userID: userID, password: password)
        } catch  where error.code == .login {
            try await onlineLogin(userID: userID, password: password, within: limit, signIn: signIn)
        }
    }

    /// Waits for the gateway's answer to a bind.
    private func answer(
        to user: BoundUser, in events: AsyncStream<SyncEvent>, within limit: Duration
    ) async throws {
        let engine = client.engine
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                for await event in events {
                    switch event {
                    case .bound(let bound) where bound.isSame(as: user.userID):
                        // It can be the answer to a former bind of the user, with another session.
                        guard await engine.awaitsLogin(of: user) else { return }
                    case .bindRefused(let refused, let reason) where refused.isSame(as: user.userID):
                        throw SyncError(.login, "the gateway has refused the user (\(reason)); sign in again")
                    case .sessionInvalid(let invalid, let reason) where invalid.isSame(as: user.userID):
                        throw SyncError(.login, "the user session is invalid (\(reason)); sign in again")
                    default: continue
                    }
                }
                throw CancellationError()
            }
            group.addTask {
                try await Task.sleep(for: limit)
                throw SyncError(.login, "the gateway has not answered in time; check the network, or use offlineLogin")
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }
}
