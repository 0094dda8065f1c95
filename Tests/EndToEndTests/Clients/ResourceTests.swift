import Foundation
import MobileSync
import OfflineResources
import TestSupport
import Testing

extension SteadySystem {
    /// Offline resources over the real client, with a backend that the test plays.
    @Suite("Resources of devices")
    struct ResourceTests {
        let stack: Stack
        private let caller: Caller

        init() throws {
            stack = try Stack.running
            caller = Caller(apis: stack.apis, instance: Stack.clientInstance)
        }

        /// Pushes a change of resources to a user's devices, as their backend does.
        private func push(_ resources: [String], to user: String) async throws -> Int {
            let payload = "{\"resources\":[\(resources.joined(separator: ","))]}"
            let answer = await caller.call("MSS_RESOURCES", to: user, id: UUID().uuidString, payload: payload)
            #expect(answer?.success == true)
            return payload.utf8.count
        }

        private func change(_ uri: String, _ action: String, tag: String? = nil, body: String? = nil) -> String {
            let tag = tag.map { ",\"etag\":\"\($0.replacing("\"", with: "\\\""))\"" } ?? ""
            let body = body.map { ",\"body\":\($0)" } ?? ""
            return "{\"uri\":\"\(uri)\",\"action\":\"\(action)\"\(tag)\(body)}"
        }

        @Test("a push refreshes the resources in use, marks the others that it names, and causes no other requests")
        func pushes() async throws {
            let backend = ResourceBackend()
            for name in ["a", "b", "c"] { backend.set("/r/\(name)", "{\"n\":1}") }
            try await backend.serving { port in
                let device = try ResourceDevice(stack, device: "resource1-a", user: "resource1", backend: port)
                for name in ["a", "b"] { _ = try await device.resources.fetchObject("/r/\(name)") }
                _ = backend.drainRequests()
                try await device.running {
                    let tags = ["a", "b", "c"].map { backend.set("/r/\($0)", "{\"n\":2}") }
                    _ = try await push(
                        [
                            change("/r/a", "refresh", tag: tags[0]), change("/r/b", "invalidate", tag: tags[1]),
                            change("/r/c", "refresh", tag: tags[2]),
                        ], to: "resource1")
                    try await device.shows("/r/a", "{\"n\":2}")
                    // The only request follows the push, for the one resource that is cached and in use.
                    #expect(backend.drainRequests() == [.init(method: "GET", path: "/r/a", status: 200)])
                    // The app is notified after the copy is stored, so `shows` can be ahead of it.
                    try await eventually("the app is notified", within: .seconds(20)) {
                        device.told.changes.map(\.uri).contains("/r/a")
                    }
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

        @Test("a push that arrived while the app was closed refreshes the resource at the next start, once")
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
                _ = backend.drainRequests()
                for _ in 0..<2 {
                    let device = try ResourceDevice(stack, device: "resource2-a", user: "resource2", backend: port)
                    try await device.running { try await device.shows("/r/a", "2") }
                }
                #expect(backend.drainRequests() == [.init(method: "GET", path: "/r/a", status: 200)])
            }
        }

        @Test("two devices edit: the conflict has both versions, and the other device gets the decision")
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

        // MARK: Policies and headers

        /// Responses that expire one second after their date, and whether they are still cached at the next start.
        private static let expiring: [(uri: String, header: String, isLeft: Bool)] = [
            ("/r/marked", "MSS-Sync-Expires", true), ("/r/evicted", "MSS-Sync-Evict", false),
            ("/r/alias", "Oracle-Mobile-Sync-Evict", false), ("/swept/a", "Oracle-Mobile-Sync-Expires", false),
        ]
        private static let unstored: [(uri: String, header: String)] = [
            ("/r/secret", "MSS-Sync-No-Store"), ("/r/hidden", "Oracle-Mobile-Sync-No-Store"),
        ]
        private static let policies = """
            {"defaultPolicy": {"expirationPolicy": "NEVER_EXPIRE", "updatePolicy": "UPDATE_IF_ONLINE"}, "policies": [
                {"path": "/r/**", "fetchPolicy": "FETCH_FROM_SERVICE_ON_CACHE_MISS_OR_EXPIRY"},
                {"path": "/swept/*", "evictionPolicy": "EVICT_ON_EXPIRY_AT_STARTUP"}]}
            """

        @Test(
            "headers go before policies: expired, a copy is marked, or evicted at the start; no-store is never stored")
        func headers() async throws {
            let backend = ResourceBackend()
            // Expiry is relative to `Date`, because the backend's clock can be wrong by years.
            let (date, later) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:38 GMT")
            for (uri, header, _) in Self.expiring { backend.setHeaders(uri, ["Date": date, header: later]) }
            for (uri, header) in Self.unstored { backend.setHeaders(uri, [header: "true"]) }
            let uris = ["/r/kept"] + Self.expiring.map(\.uri) + Self.unstored.map(\.uri)
            for uri in uris { backend.set(uri, "{}") }
            let policies = try PolicyFile(json: Array(Self.policies.utf8))
            try await backend.serving { port in
                func start() throws -> ResourceDevice {
                    try ResourceDevice(
                        stack, device: "resource5-a", user: "resource5", backend: port, policies: policies)
                }
                do {
                    let device = try start()
                    try await device.running {
                        for uri in uris { #expect(try await device.resources.fetchObject(uri) != nil, "\(uri)") }
                        #expect(try await device.resources.fetchCollection("/all/none")?.items.isEmpty == true)
                        for (uri, _) in Self.unstored { #expect(try await device.copy(uri) == nil, "\(uri)") }
                        for (uri, _, _) in Self.expiring {
                            try await eventually("\(uri) expires", within: .seconds(20)) {
                                try await device.cached(uri)?.isExpired == true
                            }
                        }
                    }
                }
                _ = backend.drainRequests()
                let device = try start()
                try await device.running {
                    for (uri, _, isLeft) in Self.expiring {
                        let isThere = try await device.cached(uri) != nil
                        #expect(isThere == isLeft, "\(uri)")
                    }
                    for uri in ["/r/kept", "/r/marked"] { _ = try await device.resources.fetchObject(uri) }
                    #expect(backend.drainRequests() == [.init(method: "GET", path: "/r/marked", status: 304)])
                    device.resources.networkChanged(isAvailable: false)
                    #expect(try await device.resources.fetchObject("/r/kept") != nil)
                    for uri in ["/r/evicted", "/swept/a", "/r/secret"] {
                        #expect(try await device.resources.fetchObject(uri) == nil, "\(uri)")
                    }
                    #expect(try await device.resources.fetchCollection("/all/none")?.items.isEmpty == true)
                    await #expect {
                        try await device.resources.update("/r/kept", body: Array("{}".utf8))
                    } throws: { ($0 as? ResourceError)?.code == .offline }
                }
            }
        }

        // MARK: Working offline

        @Test(
            "edits of offline mode are sent when it ends, the app is notified after the run, a push updates others",
            arguments: [true, false])
        func offlineMode(_ isBatch: Bool) async throws {
            let backend = ResourceBackend()
            let (user, uris) = (isBatch ? "resource6" : "resource7", ["/r/a", "/r/b", "/r/c"])
            for uri in uris { backend.set(uri, "{\"n\":1}") }
            if isBatch { backend.acceptBatches() }
            try await backend.serving { port in
                let phone = try ResourceDevice(
                    stack, device: "\(user)-a", user: user, backend: port, look: { backend.versions })
                let tablet = try ResourceDevice(stack, device: "\(user)-b", user: user, backend: port)
                try await phone.running {
                    try await tablet.running {
                        for uri in uris {
                            for device in [phone, tablet] { _ = try await device.resources.fetchObject(uri) }
                        }
                        _ = backend.drainRequests()
                        #expect(phone.resources.setOfflineMode(true) && phone.resources.status == .offlineTest)
                        for uri in uris {
                            let edited = try await phone.resources.update(uri, body: Array("{\"n\":2}".utf8))
                            #expect(edited?.hasOfflineUpdates == true)
                        }
                        #expect(backend.drainRequests().isEmpty && phone.told.synchronized.isEmpty)
                        phone.resources.setOfflineMode(false)
                        try await eventually("the app is notified of each edit", within: .seconds(20)) {
                            phone.told.synchronized.count == uris.count
                        }
                        let one = [ResourceBackend.Asked(method: "POST", path: "/batch", status: 200)]
                        let many = uris.map { ResourceBackend.Asked(method: "PUT", path: $0, status: 204) }
                        #expect(backend.drainRequests() == (isBatch ? one : many))
                        _ = try await push(uris.map { change($0, "refresh", tag: backend.tag($0)) }, to: user)
                        for uri in uris { try await tablet.shows(uri, "{\"n\":2}") }
                        // The push about the phone's own edits causes no download.
                        let refreshed = uris.map { ResourceBackend.Asked(method: "GET", path: $0, status: 200) }
                        #expect(backend.drainRequests().sorted { $0.path < $1.path } == refreshed)
                    }
                }
                let told = phone.told.synchronized
                #expect(told.map(\.uri) == uris && told.allSatisfy { $0.text == "{\"n\":2}" })
                // The backend had every edit before the app was notified of the first.
                #expect(told.map(\.seen) == uris.map { _ in backend.versions })
            }
        }

        // MARK: Conflicts of two devices

        /// A phone, offline, and a tablet edit the same resource; then the phone connects again.
        private func edited(
            _ policy: ConflictResolutionPolicy, pushed body: String?, user: String,
            _ then: (_ backend: ResourceBackend, _ phone: ResourceDevice, _ tablet: ResourceDevice) async throws -> Void
        ) async throws {
            let backend = ResourceBackend()
            backend.set("/r/a", "{\"n\":1}")
            try await backend.serving { port in
                let phone = try ResourceDevice(stack, device: "\(user)-a", user: user, backend: port)
                let tablet = try ResourceDevice(stack, device: "\(user)-b", user: user, backend: port)
                let request = SyncPolicy(conflictResolutionPolicy: policy)
                _ = try await phone.resources.fetchObject("/r/a", policy: request)
                _ = try await tablet.resources.fetchObject("/r/a")
                try await phone.running {
                    try await tablet.running {
                        phone.resources.setOfflineMode(true)
                        _ = try await phone.resources.update("/r/a", body: Array("{\"n\":\"phone\"}".utf8))
                        _ = try await tablet.resources.update("/r/a", body: Array("{\"n\":\"tablet\"}".utf8))
                        #expect(backend.body("/r/a") == "{\"n\":\"tablet\"}")
                        let tag = backend.tag("/r/a")
                        _ = try await push([change("/r/a", "refresh", tag: tag, body: body)], to: user)
                        try await eventually("the phone knows that there is another version", within: .seconds(20)) {
                            let copy = try await phone.cached("/r/a")
                            return copy?.isExpired == true || copy?.etag == tag
                        }
                        #expect(try await phone.copy("/r/a") == "{\"n\":\"phone\"}", "the edit stays")
                        _ = backend.drainRequests()
                        phone.resources.setOfflineMode(false)
                        try await eventually("the edit is settled", within: .seconds(20)) {
                            phone.told.synchronized.count == 1
                        }
                        #expect(try await phone.resources.loadOfflineResources().isEmpty)
                        try await then(backend, phone, tablet)
                    }
                }
            }
        }

        @Test("CLIENT_WINS overwrites the other device's change, and a push brings the result to the other device")
        func clientWins() async throws {
            try await edited(.clientWins, pushed: nil, user: "resource8") { backend, phone, tablet in
                #expect(backend.body("/r/a") == "{\"n\":\"phone\"}")
                _ = try await push([change("/r/a", "refresh", tag: backend.tag("/r/a"))], to: "resource8")
                try await tablet.shows("/r/a", "{\"n\":\"phone\"}")
                #expect(try await phone.copy("/r/a") == "{\"n\":\"phone\"}")
            }
        }

        @Test("SERVER_WINS drops the edit and keeps the other device's change, which a push has brought")
        func serverWins() async throws {
            let theirs = "{\"n\":\"tablet\"}"
            try await edited(.serverWins, pushed: theirs, user: "resource9") { backend, phone, _ in
                let copy = try await phone.copy("/r/a")
                #expect(copy == theirs && phone.told.synchronized.map(\.text) == [theirs])
                #expect(backend.body("/r/a") == theirs)
                // The push carried the newest version, so it was not fetched again.
                #expect(backend.drainRequests().map(\.status) == [412, 304])
            }
        }

        @Test("with 1,000 cached resources of which 10 changed, the device's traffic is at most twice that of these 10")
        func traffic() async throws {
            let figures = try await ResourceTraffic.measure(stack, user: "resource4")
            #expect(figures.ratio <= 2, "\(figures)")
            #expect(figures.asked == 10, "the others cost the backend nothing")
        }
    }
}
