import DeviceProtocol
import Foundation
import MobileSync
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing

extension ClientApp {
    /// Waits until the gateway has accepted the user.
    fileprivate func isBound(_ user: String) async throws {
        try await eventually("the user is bound", within: .seconds(10)) { self.events.contains(.bound(userID: user)) }
    }
}

/// The guide's calls onlineLogin, offlineLogin, loginToSync and beginOnlineLogin.
@Suite("Client library: logins, against a test gateway", .timeLimit(.minutes(5))) struct SyncClientLoginTests {
    /// - Parameter rounds: the cost of a password check; nil: that of a shipped app.
    private func app(_ gateway: FakeGateway, _ store: URL, rounds: Int? = 16) throws -> ClientApp {
        try ClientApp(port: gateway.port, store: store, user: nil) { configuration in
            if let rounds { configuration.loginRounds = rounds }
        }
    }

    /// Runs the app until the gateway has accepted the user that it binds.
    private func bind(_ app: ClientApp, _ gateway: FakeGateway) async throws {
        try await app.running {
            _ = try await gateway.accept().greet()
            try await app.isBound("u")
        }
    }

    private func code(_ body: () async throws -> Void) async -> SyncError.Code? {
        do {
            try await body()
            return nil
        } catch { return (error as? SyncError)?.code }
    }

    /// Logs the user in online while the gateway accepts it.
    private func login(_ app: ClientApp, _ gateway: FakeGateway, password: String, session: String) async throws {
        try await app.running {
            let connection = try await gateway.accept()
            _ = try await connection.greet()
            async let login: Void = SyncLogin(app.client).onlineLogin(userID: "u", password: password) { session }
            let bind = try await connection.nextBind()
            #expect(bind.userID == "u" && bind.sessionID == session)
            connection.accept(bind.bindNumber)
            try await login
        }
    }

    @Test("ENT4: offlineLogin verifies the last good credentials without a network, also after a restart")
    func offlineLogin() async throws {
        try await FakeGateway.withStore { gateway, store in
            do {
                let app = try app(gateway, store)
                #expect(
                    await code { try await SyncLogin(app.client).offlineLogin(userID: "u", password: "correct horse") }
                        == .login)
                try await login(app, gateway, password: "correct horse", session: "session-1")
                try await login(app, gateway, password: "changed", session: "session-2")
            }
            let app = try app(gateway, store)
            #expect(
                await code { try await SyncLogin(app.client).offlineLogin(userID: "u", password: "correct horse") }
                    == .login)
            #expect(
                await code { try await SyncLogin(app.client).offlineLogin(userID: "v", password: "changed") } == .login)
            try await SyncLogin(app.client).offlineLogin(userID: "u", password: "changed")
            // The user is bound with the session of the last good login.
            try await app.running {
                let connection = try await gateway.accept()
                let connect = try await connection.greet()
                #expect(connect.bind.userID == "u" && connect.bind.sessionID == "session-2")
            }
            let bytes = try Data(contentsOf: store) + Data(contentsOf: URL(filePath: store.path + "-wal"))
            for secret in ["correct horse", "changed", "session-2"] {
                #expect(bytes.range(of: Data(secret.utf8)) == nil, "\(secret) is readable")
            }
        }
    }

    @Test("ENT4: a refused onlineLogin binds no user and keeps the last good credentials") func refused() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try app(gateway, store)
            try await login(app, gateway, password: "good", session: "session-1")
            try await app.running {
                let connection = try await gateway.accept()
                let connect = try await connection.greet()
                #expect(connect.bind.sessionID == "session-1")
                async let login = code {
                    try await SyncLogin(app.client).onlineLogin(userID: "u", password: "bad") { "s2" }
                }
                let bind = try await connection.nextBind()
                connection.send(
                    .with {
                        $0.bindResult.bindNumber = bind.bindNumber
                        $0.bindResult.reason = "no"
                    })
                #expect(await login == .login)
                #expect(try await connection.nextBind().userID == "", "the user is not bound any more")
            }
            #expect(await code { try await SyncLogin(app.client).offlineLogin(userID: "u", password: "bad") } == .login)
            try await SyncLogin(app.client).offlineLogin(userID: "u", password: "good")
        }
    }

    @Test("ENT4: onlineLogin without a network fails in time; an error of the app's own sign-in is passed on")
    func noNetwork() async throws {
        struct SignInFailed: Error {}
        try await FakeGateway.withStore { gateway, store in
            let app = try app(gateway, store)
            let late = await code {
                try await SyncLogin(app.client).onlineLogin(userID: "u", password: "p", within: .milliseconds(1)) {
                    "s"
                }
            }
            #expect(late == .login)
            await #expect(throws: SignInFailed.self) {
                try await SyncLogin(app.client).onlineLogin(userID: "u", password: "p") { throw SignInFailed() }
            }
        }
    }

    @Test("ENT4: loginToSync is offline first, and online for a password that is not the last good one")
    func loginToSync() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try app(gateway, store)
            try await login(app, gateway, password: "good", session: "session-1")
            let asked = Mutex(0)
            try await SyncLogin(app.client).loginToSync(userID: "u", password: "good") {
                asked.withLock { $0 += 1 }
                return "s2"
            }
            #expect(asked.withLock { $0 } == 0)
            let late = await code {
                try await SyncLogin(app.client).loginToSync(userID: "u", password: "other", within: .milliseconds(1)) {
                    asked.withLock { $0 += 1 }
                    return "s2"
                }
            }
            #expect(late == .login && asked.withLock { $0 } == 1)
        }
    }

    @Test("ENT4: beginOnlineLogin returns at once, and the answer arrives as an event when there is a network")
    func beginOnlineLogin() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try app(gateway, store, rounds: nil)
            let login = SyncLogin(app.client)
            try await login.beginOnlineLogin(userID: "u", password: "p", sessionID: "s")
            #expect(await code { try await login.offlineLogin(userID: "u", password: "p") } == .login)
            try await bind(app, gateway)
            try await login.offlineLogin(userID: "u", password: "p")
        }
    }

    @Test("ENT4: ten wrong passwords in a row delete the stored login") func attempts() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try app(gateway, store)
            try await login(app, gateway, password: "good", session: "session-1")
            for _ in 0..<9 {
                #expect(
                    await code { try await SyncLogin(app.client).offlineLogin(userID: "u", password: "bad") } == .login)
            }
            try await SyncLogin(app.client).offlineLogin(userID: "u", password: "good")
            for _ in 0..<10 {
                #expect(
                    await code { try await SyncLogin(app.client).offlineLogin(userID: "u", password: "bad") } == .login)
            }
            #expect(
                await code { try await SyncLogin(app.client).offlineLogin(userID: "u", password: "good") } == .login)
        }
    }
}
