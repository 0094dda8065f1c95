import DeviceProtocol
import Foundation
import Logging
import MobileSync
import SwiftProtobuf
import Synchronization
import TestSupport
import Testing

@Suite("K1: the app's synchronisation as one object", .timeLimit(.minutes(5)))
struct SyncAppTests {
    private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    /// The calls of a part.
    private final class Calls: Sendable {
        private let calls = Mutex<[String]>([])
        var all: [String] { calls.withLock { $0 } }

        func add(_ call: String) { calls.withLock { $0.append(call) } }
    }

    private static func app(_ gateway: FakeGateway, _ store: URL, _ parts: [SyncAppPart] = []) throws -> SyncApp {
        let client = try SyncClient(
            configuration: SyncClientConfiguration(
                host: "127.0.0.1", port: gateway.port, instanceID: "app", deviceID: "d", storePath: store.path,
                trust: .plaintext),
            logger: logger)
        return SyncApp(
            client: client, parts: parts, followsSystem: true, logger: logger, pauseAfterFailure: .milliseconds(1))
    }

    @Test("it connects, reads and signs in; a part that fails runs again; it stops, frees its store, starts again")
    func life() async throws {
        try await FakeGateway.withStore { gateway, store in
            let (calls, shown) = (Calls(), Calls())
            let failing = SyncAppPart(
                "failing", userChanged: { calls.add("user \($0 ?? "none")") },
                run: { _ in
                    calls.add("run")
                    if calls.all.count(where: { $0 == "run" }) == 1 { throw Failure("once") }
                })
            let reading = SyncAppPart("reading") { client in
                for try await oplog in client.oplogs(of: "B") {
                    shown.add(oplog.text ?? "bytes")
                    try await client.confirm(oplog)
                }
            }
            let app = try Self.app(gateway, store, [failing, reading])
            app.start()
            app.start()
            let session = try await gateway.accept()
            #expect(try await !session.greet().hasBind)
            try await eventually("the part ran twice", within: .seconds(5)) { calls.all == ["run", "run"] }
            try await app.signIn(userID: "u", sessionID: "s")
            let bind = try await session.nextBind()
            #expect(bind.userID == "u" && bind.sessionID == "s")
            session.accept(bind.bindNumber)
            session.push([1], after: 0, upto: 1, bind: bind.bindNumber)
            try await eventually("the oplog is shown", within: .seconds(5)) { shown.all == ["1"] }
            try await app.signOut()
            #expect(calls.all == ["run", "run", "user u", "user none"])
            await app.stop()
            #expect(app.client.status == .notAvailable && app.connectionFailure == nil)
            let other = try Self.app(gateway, store)
            other.start()
            _ = try await gateway.accept().greet()
            await other.stop()
            app.start()
            _ = try await gateway.accept().greet()
            await app.stop()
        }
    }

    @Test("a user that a part refuses, or with an invalid id, is not bound") func refusedUser() async throws {
        try await FakeGateway.withStore { gateway, store in
            let part = SyncAppPart(
                "strict", userChanged: { if $0 == "b" { throw Failure("not b") } }, run: { _ in })
            let app = try Self.app(gateway, store, [part])
            await #expect(throws: Failure.self) { try await app.signIn(userID: "b", sessionID: "s") }
            await #expect(throws: SyncError.self) { try await app.signIn(userID: "", sessionID: "s") }
            app.start()
            #expect(try await !gateway.accept().greet().hasBind)
            await app.stop()
        }
    }

    @Test("a sign-out tells all parts, in spite of an error; a failed sign-in leaves no former user bound")
    func failedUsers() async throws {
        try await FakeGateway.withStore { gateway, store in
            let calls = Calls()
            let strict = SyncAppPart(
                "strict", userChanged: { if $0 != "a" { throw Failure("only a") } }, run: { _ in })
            let other = SyncAppPart("other", userChanged: { calls.add($0 ?? "none") }, run: { _ in })
            let app = try Self.app(gateway, store, [strict, other])
            app.start()
            try await app.signIn(userID: "a", sessionID: "s")
            let session = try await gateway.accept()
            _ = try await session.greet()
            await #expect(throws: Failure.self) { try await app.signIn(userID: "b", sessionID: "s") }
            let unbound = try await session.next { packet -> Bool? in
                if case .bind(let bind)? = packet.body, bind.userID.isEmpty { true } else { nil }
            }
            #expect(unbound)
            await #expect(throws: Failure.self) { try await app.signOut() }
            #expect(calls.all == ["a", "none"])
            await app.stop()
        }
    }

    @Test("a sign-out waits for a sign-in that is in progress, so no user is bound after it")
    func outAfterIn() async throws {
        try await FakeGateway.withStore { gateway, store in
            let calls = Calls()
            let (gate, opening) = AsyncStream.makeStream(of: Void.self)
            let part = SyncAppPart(
                "slow",
                userChanged: { user in
                    calls.add(user ?? "none")
                    if user != nil { for await _ in gate { break } }
                }, run: { _ in })
            let app = try Self.app(gateway, store, [part])
            async let signedIn: Void = app.signIn(userID: "u", sessionID: "s")
            try await eventually("the part is told", within: .seconds(5)) { calls.all == ["u"] }
            async let signedOut: Void = app.signOut()
            opening.yield(())
            _ = try await (signedIn, signedOut)
            #expect(calls.all == ["u", "none"])
            app.start()
            #expect(try await !gateway.accept().greet().hasBind)
            await app.stop()
        }
    }

    @Test("a part that awaited a cancelled task runs again") func cancelledElsewhere() async throws {
        try await FakeGateway.withStore { gateway, store in
            let calls = Calls()
            let part = SyncAppPart("cancelled") { _ in
                calls.add("run")
                if calls.all.count == 1 { throw CancellationError() }
            }
            let app = try Self.app(gateway, store, [part])
            app.start()
            try await eventually("the part runs again", within: .seconds(5)) { calls.all.count == 2 }
            await app.stop()
        }
    }

    @Test("the background time and the network are the client's; an end for good is a failure until the next start")
    func system() async throws {
        try await FakeGateway.withStore { gateway, store in
            let networks = Calls()
            let part = SyncAppPart("network", networkChanged: { networks.add($0.name) }, run: { _ in })
            let app = try Self.app(gateway, store, [part])
            app.networkChanged(to: NetworkPath(isAvailable: false))
            app.start()
            app.networkChanged(to: NetworkPath(isAvailable: true, name: "wifi"))
            #expect(networks.all == ["", "wifi"])
            app.setForeground(true)
            let session = try await gateway.accept()
            _ = try await session.greet()
            session.send(.with { $0.close.code = CloseCode.unknownInstance.rawValue })
            try await eventually("the failure", within: .seconds(5)) { app.connectionFailure?.closeCode == 5_001 }
            await app.stop()
            app.start()
            #expect(app.connectionFailure == nil)
            _ = try await gateway.accept().greet()
            await app.stop()
        }
    }
}
