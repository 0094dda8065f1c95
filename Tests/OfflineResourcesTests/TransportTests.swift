import Foundation
import Synchronization
import Testing

@testable import OfflineResources

@Suite("Over HTTP", .timeLimit(.minutes(2))) struct TransportTests {
    private func request(_ uri: String, _ method: String = "GET", user: String? = nil) -> ResourceRequest {
        ResourceRequest(method: method, uri: uri, userID: user)
    }

    @Test("credentials are sent with each request of their user, and a request without credentials is not sent")
    func credentials() async throws {
        let backend = Backend()
        try await backend.serve { url in
            backend.set("/a", "1")
            let transport = try HTTPResourceTransport(baseURL: url) { user in
                guard let user else { throw Unexpected("nobody") }
                return [("Authorization", "Bearer \(user)")]
            }
            #expect(try await transport.send(request("/a", user: "u1")).body == bytes("1"))
            await #expect { try await transport.send(request("/a")) } throws: { error in
                if case .noCredentials? = error as? TransportError { true } else { false }
            }
            #expect(backend.drainRequests().map(\.authorization) == ["Bearer u1"])
        }
    }

    @Test("redirects are followed on the same host, and to no other: credentials stay on the host")
    func redirects() async throws {
        let (backend, other) = (Backend(), Backend())
        try await backend.serve { url in
            try await other.serve { elsewhere in
                let transport = try HTTPResourceTransport(baseURL: url) { _ in [("Authorization", "secret")] }
                backend.set("/b", "1")
                other.set("/b", "2")
                backend.state.withLock {
                    $0.redirects = ["/near": "/api/b", "/far": elsewhere + "/b", "/round": "/api/round"]
                }
                #expect(try await transport.send(request("/near")).body == bytes("1"))
                #expect(try await transport.send(request("/far")).status == 302)
                #expect(other.drainRequests().isEmpty)
                await #expect(throws: TransportError.self) { try await transport.send(request("/round")) }
                _ = backend.drainRequests()
                // An edit is not repeated elsewhere with another method.
                #expect(try await transport.send(request("/near", "DELETE")).status == 302)
                #expect(backend.body("/b") == "1")
            }
        }
    }

    @Test("an answer above the size limit is refused, and the fetch reports that") func size() async throws {
        let backend = Backend()
        try await backend.serve { url in
            backend.set("/a", String(repeating: "x", count: 2_000))
            let transport = try HTTPResourceTransport(baseURL: url, mostBytes: 1_999)
            await #expect { try await transport.send(request("/a")) } throws: { error in
                if case .unusable? = error as? TransportError { true } else { false }
            }
            let exact = try HTTPResourceTransport(baseURL: url, mostBytes: 2_000)
            #expect(try await exact.send(request("/a")).body.count == 2_000)
        }
    }

    @Test("a port without a listener is detected at once, and nothing was sent") func nobody() async throws {
        let transport = try HTTPResourceTransport(baseURL: "http://127.0.0.1:1")
        await #expect { try await transport.send(request("/a")) } throws: { error in
            if case .notSent? = error as? TransportError { true } else { false }
        }
    }

    @Test("a time limit ends the request") func deadline() async throws {
        let backend = Backend()
        try await backend.serve { url in
            let transport = try HTTPResourceTransport(baseURL: url, timeout: .nanoseconds(1))
            await #expect(throws: TransportError.self) { try await transport.send(request("/a")) }
        }
        #expect(throws: ResourceError.self) { try HTTPResourceTransport(baseURL: "http://h", timeout: .zero) }
        #expect(throws: ResourceError.self) { try HTTPResourceTransport(baseURL: "h") }
    }
}
