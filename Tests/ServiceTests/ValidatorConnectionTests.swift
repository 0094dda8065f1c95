import Foundation
import NIOCore
import NIOHTTP1
import ServiceKit
import SyncModel
import TestSupport
import Testing

@testable import SessionValidator
@testable import TenantCalls

@Suite("Connections to tenants", .timeLimit(.minutes(1)))
struct ValidatorConnectionTests {
    @Test("V5: a question on a connection that has just gone fails at once, so that a new connection is made for it")
    func gone() async throws {
        let tenant = try FakeTenant(answer: FakeTenant.valid, keepsOpen: true)
        defer { _ = tenant.stop() }
        let connections = try TenantConnections(connectLimit: .seconds(10), bodyMax: 16_384, authorityFile: nil)
        let key = TenantConnections.Key(
            InstanceID("i"), try CalloutURL("http://127.0.0.1:\(tenant.port)/"),
            at: try #require(IPAddress("127.0.0.1")))
        let channel = try await connections.connect(key, by: .now() + .seconds(10))
        try await channel.close().get()
        let head = HTTPRequestHead(version: .http1_1, method: .POST, uri: "/")
        await #expect(throws: CalloutError.closed) {
            // Whoever waits for the deadline is told that it was not in time.
            try await connections.exchange(head, ByteBuffer(), on: channel, by: .now() + .seconds(2))
        }
        connections.close()
    }
}
