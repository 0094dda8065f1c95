import Foundation
import Testing

@testable import OfflineResources

@Suite("Pushes and refreshes", .timeLimit(.minutes(2))) struct PushTests {
    private let cached = SyncPolicy(fetchPolicy: .fetchFromCache)

    private func applyPush(
        _ resources: String, by client: ResourceClient, user: String? = "u1", at date: Date = .distantFuture
    ) async throws {
        try await client.take(push: bytes("{\"resources\":[\(resources)]}"), userID: user, pushedAt: date)
    }

    @Test("with 1,000 cached resources of which 10 changed, the traffic is at most twice that of these 10")
    func traffic() async throws {
        try await Bench.with { bench in
            let filling = String(repeating: "x", count: 500)
            for number in 0..<1_000 { bench.backend.set("/a/\(number)", "{\"id\":\(number),\"t\":\"\(filling)\"}") }
            let client = try bench.start()
            _ = try await client.fetchCollection("/a")
            let changed = (0..<10).map { $0 * 97 }
            for number in changed { bench.backend.set("/a/\(number)", "{\"id\":\(number),\"t\":\"new \(filling)\"}") }
            // The traffic of these ten alone.
            let other = try bench.start(user: "u2") { $0.storePath = bench.folder.appending(path: "other.sqlite").path }
            _ = bench.backend.drainRequests()
            for number in changed { _ = try await other.fetchObject("/a/\(number)") }
            let ten = bench.backend.drainRequests().reduce(0) { $0 + $1.bytes }
            let push = changed.map { number -> String in
                let tag = (bench.backend.tag("/a/\(number)") ?? "").replacing("\"", with: "\\\"")
                return "{\"uri\":\"/a/\(number)\",\"etag\":\"\(tag)\",\"action\":\"refresh\"}"
            }.joined(separator: ",")
            try await applyPush(push, by: client)
            try await client.refresher.refresh()
            let asked = bench.backend.drainRequests()
            #expect(Set(asked.map(\.uri)) == Set(changed.map { "/a/\($0)" }) && asked.count == 10)
            let traffic = asked.reduce(push.utf8.count) { $0 + $1.bytes }
            #expect(traffic <= 2 * ten, "\(traffic) bytes for \(ten)")
            client.networkChanged(isAvailable: false)
            let collection = try #require(try await client.fetchCollection("/a"))
            #expect(collection.items.count == 1_000)
            #expect(collection.items.filter { text($0.body).contains("new ") }.count == 10)
            #expect(bench.told.drain().count == 10)
        }
    }

    @Test("run() refreshes a pushed resource at once") func atOnce() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "1")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await client.run() }
                bench.backend.set("/a", "2")
                var calls = bench.told.coming.makeAsyncIterator()
                let start = ContinuousClock.now
                try await applyPush("{\"uri\":\"/a\",\"action\":\"refresh\"}", by: client)
                #expect(await calls.next() == .changed("/a", "2"))
                #expect(start.duration(to: .now) < .seconds(1) * 3)
                group.cancelAll()
                try await group.waitForAll()
            }
        }
    }

    @Test("a body with its tag replaces the copy, and nothing is fetched") func withBody() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "{\"n\":1}")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            _ = bench.backend.drainRequests()
            try await applyPush(#"{"uri":"/api/a","etag":"\"x\"","action":"refresh","body":{"n":2}}"#, by: client)
            #expect(bench.told.drain() == [.changed("/a", "{\"n\":2}")])
            try await client.refresher.refresh()
            #expect(bench.backend.drainRequests().isEmpty)
            let copy = try await client.fetchObject("/a", policy: cached)
            #expect(copy?.body == bytes("{\"n\":2}") && copy?.etag == "\"x\"" && copy?.isExpired == false)
        }
    }

    @Test("a push that is older than the copy does not replace it: the resource is fetched")
    func oldBody() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "{\"n\":3}")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            try await applyPush(
                #"{"uri":"/a","etag":"\"x\"","action":"refresh","body":{"n":2}}"#, by: client, at: .distantPast)
            try await client.refresher.refresh()
            #expect(try await client.fetchObject("/a", policy: cached)?.body == bytes("{\"n\":3}"))
            #expect(bench.told.drain().isEmpty)
        }
    }

    @Test("the push of the device's own edit, and of a resource without a copy, cause no request")
    func nothingToDo() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "1")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            _ = try await client.update("/a", body: bytes("2"))
            _ = bench.backend.drainRequests()
            let tag = (bench.backend.tag("/a") ?? "").replacing("\"", with: "\\\"")
            try await applyPush(
                "{\"uri\":\"/a\",\"etag\":\"\(tag)\",\"action\":\"refresh\"},{\"uri\":\"/b\",\"action\":\"refresh\"}",
                by: client)
            try await client.refresher.refresh()
            #expect(bench.backend.drainRequests().isEmpty)
        }
    }

    @Test("invalidate only marks, delete removes, also from collections") func otherActions() async throws {
        try await Bench.with { bench in
            for number in 1...3 { bench.backend.set("/a/\(number)", "\(number)") }
            let client = try bench.start()
            _ = try await client.fetchCollection("/a", policy: SyncPolicy(expirationPolicy: .neverExpire))
            try await applyPush(
                "{\"uri\":\"/a/1\",\"action\":\"invalidate\"},{\"uri\":\"/a/2\",\"action\":\"delete\"}", by: client)
            #expect(bench.told.drain() == [.changed("/a/2", nil)])
            _ = bench.backend.drainRequests()
            try await client.refresher.refresh()
            #expect(bench.backend.drainRequests().isEmpty)
            #expect(try await client.fetchObject("/a/1", policy: cached)?.isExpired == true)
            #expect(try await client.fetchObject("/a/2", policy: cached) == nil)
            #expect(try await client.fetchCollection("/a", policy: cached)?.items.map(\.uri) == ["/a/1", "/a/3"])
            let onExpiry = SyncPolicy(fetchPolicy: .fetchFromServiceOnCacheMissOrExpiry)
            _ = try await client.fetchObject("/a/1", policy: onExpiry)
            _ = try await client.fetchObject("/a/3", policy: onExpiry)
            #expect(bench.backend.drainRequests().map(\.uri) == ["/a/1"])
        }
    }

    @Test("a collection's path includes its pages") func pages() async throws {
        try await Bench.with { bench in
            for number in 1...3 { bench.backend.set("/a/\(number)", "\(number)") }
            let client = try bench.start()
            _ = try await client.fetchCollection("/a")
            _ = try await client.fetchCollection("/a", limit: 1)
            _ = bench.backend.drainRequests()
            try await applyPush("{\"uri\":\"/a\",\"action\":\"refresh\"}", by: client)
            try await client.refresher.refresh()
            #expect(Set(bench.backend.drainRequests().map(\.uri)) == ["/a", "/a?limit=1"])
        }
    }

    @Test("edits stay under a push, and their base version is remembered") func edited() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "{\"n\":1}")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            client.networkChanged(isAvailable: false)
            _ = try await client.update("/a", body: bytes("{\"n\":2}"))
            bench.backend.set("/a", "{\"n\":3}")
            let tag = (bench.backend.tag("/a") ?? "").replacing("\"", with: "\\\"")
            try await applyPush(
                "{\"uri\":\"/a\",\"etag\":\"\(tag)\",\"action\":\"refresh\",\"body\":{\"n\":3}}", by: client)
            #expect(try await client.fetchObject("/a")?.body == bytes("{\"n\":2}"))
            client.networkChanged(isAvailable: true)
            #expect(try await client.synchronise().conflicts == 1)
            try await applyPush("{\"uri\":\"/a\",\"action\":\"delete\"}", by: client)
            #expect(try await client.conflict(of: "/a")?.local == bytes("{\"n\":2}"))
            #expect(try await client.conflict(of: "/a")?.server == nil)
        }
    }

    @Test("a push for another user changes that user's copies only; a push for all marks everyone's")
    func users() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "1")
            let client = try bench.start(user: "u1")
            _ = try await client.fetchObject("/a")
            try client.bind(userID: "u2")
            _ = try await client.fetchObject("/a")
            try await applyPush(
                #"{"uri":"/a","etag":"\"x\"","action":"refresh","body":"u1's"}"#, by: client, user: "u1")
            #expect(bench.told.drain().isEmpty)
            #expect(try await client.fetchObject("/a", policy: cached)?.body == bytes("1"))
            try await applyPush(#"{"uri":"/a","etag":"\"y\"","action":"refresh","body":"all"}"#, by: client, user: nil)
            #expect(try await client.fetchObject("/a", policy: cached)?.body == bytes("\"all\""))
            try client.bind(userID: "u1")
            let copy = try await client.fetchObject("/a", policy: cached)
            #expect(copy?.body == bytes("\"u1's\"") && copy?.isExpired == true)
            _ = bench.backend.drainRequests()
            try await client.refresher.refresh()
            #expect(bench.backend.drainRequests().map(\.authorization) == ["Bearer u1"])
        }
    }

    @Test("a refresh that a push requested survives the app's end, and waits for the network")
    func restart() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "1")
            let first = try bench.start()
            _ = try await first.fetchObject("/a")
            bench.backend.set("/a", "2")
            first.networkChanged(isAvailable: false)
            try await applyPush("{\"uri\":\"/a\",\"action\":\"refresh\"}", by: first)
            try await first.refresher.refresh()
            let client = try bench.start()
            try await client.refresher.refresh()
            #expect(try await client.fetchObject("/a", policy: cached)?.body == bytes("2"))
        }
    }

    @Test("urgent resources are fetched first, those pinned Low only when no edits wait") func pins() async throws {
        try await Bench.with { bench in
            for path in ["/low", "/plain", "/normal", "/high"] { bench.backend.set(path, "1") }
            let client = try bench.start()
            for path in ["/low", "/plain", "/normal", "/high"] { _ = try await client.fetchObject(path) }
            try await client.pinResource("/low", .low)
            try await client.pinResource("normal", .normal)
            try await client.pinResource("/high", .high)
            #expect(try await client.fetchObject("/high")?.pin == .high)
            await #expect {
                try await client.pinResource("/none", .high)
            } throws: { ($0 as? ResourceError)?.code == .notCached }
            let push = ["/low", "/plain", "/normal", "/high"]
                .map { "{\"uri\":\"\($0)\",\"action\":\"refresh\"}" }.joined(separator: ",")
            try await applyPush(push, by: client)
            let wishes = try await client.store.write("test") {
                try $0.refreshes.requests(owner: "u1", includesLow: true).map(\.uri.description)
            }
            #expect(wishes == ["/high", "/normal", "/plain", "/low"])
            client.networkChanged(isAvailable: false)
            _ = try await client.update("/plain", body: bytes("2"))
            client.networkChanged(isAvailable: true)
            _ = bench.backend.drainRequests()
            try await client.refresher.refresh()
            #expect(Set(bench.backend.drainRequests().map(\.uri)) == ["/plain", "/normal", "/high"])
            _ = try await client.synchronise()
            _ = bench.backend.drainRequests()
            try await client.refresher.refresh()
            #expect(bench.backend.drainRequests().map(\.uri) == ["/low"])
        }
    }

    @Test(
        "an expired resource is refreshed from the service under every fetch policy, a collection in place of its items"
    )
    func expired() async throws {
        try await Bench.with { bench in
            for path in ["/a/1", "/a/2", "/b", "/c"] { bench.backend.set(path, "{}") }
            let client = try bench.start()
            let policy = SyncPolicy(
                fetchPolicy: .fetchFromServiceOnCacheMiss, expirationPolicy: .expireAfter, expireAfter: .seconds(60))
            _ = try await client.fetchCollection("/a", policy: policy)
            _ = try await client.fetchObject("/b", policy: policy)
            _ = try await client.fetchObject("/c", policy: SyncPolicy(expirationPolicy: .neverExpire))
            _ = bench.backend.drainRequests()
            try await client.refresher.requestRefreshOfExpired()
            try await client.refresher.refresh()
            #expect(bench.backend.drainRequests().isEmpty)
            bench.pass(61)
            try await client.refresher.requestRefreshOfExpired()
            try await client.refresher.refresh()
            #expect(Set(bench.backend.drainRequests().map(\.uri)) == ["/a", "/b"])
            // Fresh now, with the saved policies.
            try await client.refresher.requestRefreshOfExpired()
            try await client.refresher.refresh()
            #expect(bench.backend.drainRequests().isEmpty)
            #expect(try await client.fetchObject("/b", policy: cached)?.policy.expireAfter == .seconds(60))
        }
    }

    @Test(
        "run() refreshes expired resources at the start and periodically, by its policy",
        arguments: PeriodicRefreshPolicy.allCases)
    func periodic(_ policy: PeriodicRefreshPolicy) async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "1")
            _ = try await bench.start().fetchObject(
                "/a", policy: SyncPolicy(expirationPolicy: .expireAfter, expireAfter: .seconds(60)))
            bench.pass(61)
            let client = try bench.start {
                $0.periodicRefreshPolicy = policy
                $0.periodicRefreshInterval = .milliseconds(50)
            }
            bench.backend.set("/a", "2")
            bench.backend.set("/sign", "s")
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await client.run() }
                var calls = bench.told.coming.makeAsyncIterator()
                if policy != .refreshNone { #expect(await calls.next() == .changed("/a", "2")) }
                bench.pass(61)
                bench.backend.set("/a", "3")
                if policy == .periodicallyRefreshExpiredItems {
                    #expect(await calls.next() == .changed("/a", "3"))
                } else {
                    // Another refresh, by run(), continues without it.
                    _ = try await client.fetchObject("/sign")
                    bench.backend.set("/sign", "t")
                    try await applyPush("{\"uri\":\"/sign\",\"action\":\"refresh\"}", by: client)
                    #expect(await calls.next() == .changed("/sign", "t"))
                    #expect(
                        try await client.fetchObject("/a", policy: cached)?.body
                            == bytes(policy == .refreshNone ? "1" : "2"))
                }
                group.cancelAll()
                try await group.waitForAll()
            }
        }
    }

    @Test("run() continues by itself when the network is back, and runs once") func recovery() async throws {
        try await Bench.with { bench in
            let client = try bench.start { $0.clock = { Date() } }
            bench.transport.network = .isCut
            _ = try await client.update("/a", body: bytes("1"))
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await client.run() }
                var calls = bench.told.coming.makeAsyncIterator()
                bench.transport.network = .works
                #expect(await calls.next() == .synchronized("/a", "1"))
                await #expect { try await client.run() } throws: { ($0 as? ResourceError)?.code == .alreadyRunning }
                group.cancelAll()
                try await group.waitForAll()
            }
        }
    }

    @Test("a resource that the service refuses is not requested again and again")
    func refusedRefresh() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "1")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            try await applyPush("{\"uri\":\"/a\",\"action\":\"refresh\"}", by: client)
            bench.backend.refuse("GET", 403)
            try await client.refresher.refresh()
            _ = bench.backend.drainRequests()
            try await client.refresher.refresh()
            #expect(bench.backend.drainRequests().isEmpty)
            #expect(try await client.fetchObject("/a", policy: cached)?.isExpired == true)
        }
    }
}
