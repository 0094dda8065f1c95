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
    @Test("V5: a request on a connection that has just closed fails at once, so that a new one is opened")
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
            // The caller that waits for the deadline receives a timeout.
            try await connections.exchange(head, ByteBuffer(), on: channel, by: .now() + .seconds(2))
        }
        connections.close()
    }
}
