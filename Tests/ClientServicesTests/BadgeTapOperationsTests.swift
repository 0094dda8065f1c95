import Foundation
import MobileSync
import Testing

@testable import ClientServices

@Suite("Client services: taps as operations") struct BadgeTapOperationsTests {
    private struct Body: Decodable, Equatable {
        let path: String
        let business: String
        let stamp: Int64?
        let at: Int64
    }

    private let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder() }

    /// A client that never connects.
    private func client() throws -> SyncClient {
        try SyncClient(
            configuration: SyncClientConfiguration(
                host: "127.0.0.1", port: 1, instanceID: "app", deviceID: "d",
                storePath: folder.url.appendingPathComponent("sync.sqlite").path), logger: .silent)
    }

    private func tap(_ number: Int, user: String?, path: String = "home/chat", stamp: Int64? = 41) throws -> BadgeTap {
        BadgeTap(
            id: String(repeating: "0", count: 31) + "\(number)", userID: user, path: try #require(BadgePath(path)),
            business: "chat", stamp: stamp, at: 5)
    }

    @Test("a tap is an operation of its user with the tap's id, for any bound user; reported twice it is sent once")
    func reported() throws {
        let client = try client()
        let taps = BadgeTapOperations(client: client, logger: .silent)
        try client.bind(userID: "u2", sessionID: "s")
        for _ in 0..<2 { try taps.report(tap(1, user: "u1")) }
        try taps.report(tap(2, user: "u1", stamp: nil))
        #expect(try client.pendingOperations().isEmpty)
        try client.bind(userID: "u1", sessionID: "s")
        let operations = try client.pendingOperations()
        #expect(try operations.map(\.id) == [tap(1, user: "u1").id, tap(2, user: "u1").id])
        #expect(operations.allSatisfy { $0.component == "MSS_BADGES" && $0.name == "tap" && $0.key == "u1" })
        let bodies = try operations.map { try JSONDecoder().decode(Body.self, from: Data($0.body)) }
        #expect(bodies == [41, nil].map { Body(path: "home/chat", business: "chat", stamp: $0, at: 5) })
    }

    @Test("a tap without a user, and one that fits no operation, are dropped, and others continue")
    func letGo() throws {
        let client = try client()
        let taps = BadgeTapOperations(client: client, logger: .silent)
        let long = String(repeating: "\u{10348}", count: 50)
        try taps.report(tap(1, user: nil))
        try taps.report(tap(2, user: "a\0b"))
        try taps.report(tap(3, user: long, path: "a\0b"))
        try client.bind(userID: long, sessionID: "s")
        let operations = try client.pendingOperations()
        #expect(try operations.map(\.id) == [tap(3, user: long).id])
        #expect(operations.map(\.key) == [long])
    }
}
