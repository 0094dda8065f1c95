import Foundation
import MobileSync
import OfflineResources
import TestSupport
import Testing

extension RunningSystem {
    /// Offline resources over the real client, with a backend that the test plays.
    @Suite("Resources of devices")
    struct ResourceTests {
        let stack: Stack
        private let caller: Caller

        init() throws {
            stack = try RunningSystem.stack
            caller = Caller(apis: stack.apis, instance: Stack.clientInstance)
        }

        /// Tells a user's devices of resources, as their backend does.
        private func push(_ resources: [String], to user: String) async throws -> Int {
            let payload = "{\"resources\":[\(resources.joined(separator: ","))]}"
            let answer = await caller.call("MSS_RESOURCES", to: user, id: UUID().uuidString, payload: payload)
            #expect(answer?.success == true)
            return payload.utf8.count
        }

        private func change(_ uri: String, _ action: String, tag: String? = nil) -> String {
            let tag = tag.map { ",\"etag\":\"\($0.replacing("\"", with: "\\\""))\"" } ?? ""
            return "{\"uri\":\"\(uri)\",\"action\":\"\(action)\"\(tag)}"
        }

        @Test("a push refreshes what an online device has, marks what it names, and costs nothing for other resources")
        func pushes() async throws {
            let backend = ResourceBackend()
            for name in ["a", "b", "c"] { backend.set("/r/\(name)", "{\"n\":1}") }
            try await backend.serving { port in
                let device = try ResourceDevice(stack, device: "resource1-a", user: "resource1", backend: port)
                for name in ["a", "b"] { _ = try await device.resources.fetchObject("/r/\(name)") }
                _ = backend.takeAsked()
                try await device.running {
                    let tags = ["a", "b", "c"].map { backend.set("/r/\($0)", "{\"n\":2}") }
                    _ = try await push(
                        [
                            change("/r/a", "refresh", tag: tags[0]), change("/r/b", "invalidate", tag: tags[1]),
                            change("/r/c", "refresh", tag: tags[2]),
                        ], to: "resource1")
                    try await device.shows("/r/a", "{\"n\":2}")
                    // The backend was asked after the push, and only for what is here and was to be fetched.
                    #expect(backend.takeAsked() == [.init(method: "GET", path: "/r/a", status: 200)])
                    #expect(device.told.changes.map(\.uri).contains("/r/a"))
                    let marked = try await device.resources.fetchObject(
                        "/r/b", policy: SyncPolicy(fetchPolicy: .fetchFromCache))
                    #expect(marked?.isExpired == true && marked?.body == Array("{\"n\":1}".utf8))
                    _ = try await push([change("/r/a", "delete")], to: "resource1")
                    try await eventually("it is gone", within: .seconds(20)) {
                        try await device.copy("/r/a") == nil
                    }
                }
            }
        }

        @Test("a push that came while the app was away refreshes at the next start, and then once")
        func afterRestart() async throws {
            let backend = ResourceBackend()
            backend.set("/r/a", "1")
            try await backend.serving { port in
                do {
                    let device = try ResourceDevice(stack, device: "resource2-a", user: "resource2", backend: port)
                    try await device.running { _ = try await device.resources.fetchObject("/r/a") }
                }
                let tag = backend.set("/r/a", "2")
                _ = try await push([change("/r/a", "refresh", tag: tag)], to: "resource2")
                _ = backend.takeAsked()
                for _ in 0..<2 {
                    let device = try ResourceDevice(stack, device: "resource2-a", user: "resource2", backend: port)
                    try await device.running { try await device.shows("/r/a", "2") }
                }
                #expect(backend.takeAsked() == [.init(method: "GET", path: "/r/a", status: 200)])
            }
        }

        @Test("edited here and there: the conflict has both versions, and what was decided reaches the other device")
        func conflict() async throws {
            let backend = ResourceBackend()
            backend.set("/r/a", "{\"n\":1}")
            try await backend.serving { port in
                do {
                    let device = try ResourceDevice(stack, device: "resource3-a", user: "resource3", backend: port)
                    _ = try await device.resources.fetchObject("/r/a")
                    device.resources.networkChanged(isAvailable: false)
                    _ = try await device.resources.update("/r/a", body: Array("{\"n\":\"mine\"}".utf8))
                }
                backend.set("/r/a", "{\"n\":\"theirs\"}")
                let phone = try ResourceDevice(stack, device: "resource3-a", user: "resource3", backend: port)
                let tablet = try ResourceDevice(stack, device: "resource3-b", user: "resource3", backend: port)
                _ = try await tablet.resources.fetchObject("/r/a")
                try await phone.running {
                    try await tablet.running {
                        try await eventually("there is a conflict", within: .seconds(20)) {
                            try await phone.resources.conflict(of: "/r/a") != nil
                        }
                        let conflict = try #require(try await phone.resources.conflict(of: "/r/a"))
                        #expect(conflict.local == Array("{\"n\":\"mine\"}".utf8))
                        #expect(conflict.server == Array("{\"n\":\"theirs\"}".utf8))
                        #expect(backend.body("/r/a") == "{\"n\":\"theirs\"}", "nothing was overwritten")
                        try await phone.resources.resolveConflict("/r/a", .merged(Array("{\"n\":\"both\"}".utf8)))
                        try await eventually("the backend has it", within: .seconds(20)) {
                            backend.body("/r/a") == "{\"n\":\"both\"}"
                        }
                        _ = try await push([change("/r/a", "refresh")], to: "resource3")
                        try await tablet.shows("/r/a", "{\"n\":\"both\"}")
                    }
                }
                #expect(try await phone.resources.loadOfflineResources().isEmpty)
            }
        }

        @Test("of 1,000 cached resources of which 10 changed, all traffic of the device is within twice these 10")
        func traffic() async throws {
            let figures = try await ResourceTraffic.measure(stack, user: "resource4")
            #expect(figures.ratio <= 2, "\(figures)")
            #expect(figures.asked == 10, "the others cost the backend nothing")
        }
    }
}
