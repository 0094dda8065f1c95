import Foundation
import MobileSync
import Synchronization
import Testing

@testable import OfflineResources

@Suite("Fetching through the cache", .timeLimit(.minutes(2))) struct FetchTests {
    @Test("every fetch policy in every state does as the table says, at a real server")
    func policies() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a/1", "{\"n\":1}")
            for fetchPolicy in FetchPolicy.allCases {
                for state in CopyState.allCases {
                    for isOnline in [true, false] {
                        try await check(fetchPolicy, state, isOnline, on: bench)
                    }
                }
            }
        }
    }

    private func check(_ fetchPolicy: FetchPolicy, _ state: CopyState, _ isOnline: Bool, on bench: Bench) async throws {
        let client = try bench.start()
        try await client.evictAll()
        if state != .missing {
            _ = try await client.fetchObject(
                "/a/1", policy: SyncPolicy(expirationPolicy: .expireAfter, expireAfter: .seconds(60)))
            if state == .expired { bench.pass(61) }
        }
        client.networkChanged(isAvailable: isOnline)
        _ = bench.backend.drainRequests()
        let (hits, misses) = (client.cacheHitCount, client.cacheMissCount)
        let policy = SyncPolicy(
            fetchPolicy: fetchPolicy, expirationPolicy: .expireAfter, expireAfter: .seconds(60))
        let found = try await client.fetchObject("a/1", policy: policy)
        let effective = EffectivePolicy.standard.overridden(by: [policy])
        let decision = FetchDecision(effective, copy: state, isOnline: isOnline)
        let what = Comment(rawValue: "\(fetchPolicy.rawValue), \(state), online: \(isOnline)")
        switch decision.action {
        case .service:
            #expect(bench.backend.drainRequests().count == 1, what)
            #expect(found?.isFromCache == false, what)
        case .copy(let refreshes):
            #expect(bench.backend.drainRequests().isEmpty, what)
            #expect(found?.isFromCache == true && found?.isExpired == (state == .expired), what)
            try await client.refresher.refresh()
            #expect(bench.backend.drainRequests().count == (refreshes ? 1 : 0), what)
        case .nothing(let refreshes):
            #expect(found == nil, what)
            try await client.refresher.refresh()
            #expect(bench.backend.drainRequests().count == (refreshes ? 1 : 0), what)
        }
        #expect(client.cacheHitCount - hits == (decision.lookup == .hit ? 1 : 0), what)
        #expect(client.cacheMissCount - misses == (decision.lookup == .miss ? 1 : 0), what)
    }

    @Test("noCache asks the service, stores nothing, and removes a stored copy") func noCache() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a/1", "{}")
            let client = try bench.start()
            _ = try await client.fetchObject("/a/1")
            let policy = SyncPolicy(fetchPolicy: .fetchFromCache, noCache: true)
            #expect(try await client.fetchObject("/a/1", policy: policy)?.isFromCache == false)
            #expect(try await client.fetchObject("/a/1", policy: SyncPolicy(fetchPolicy: .fetchFromCache)) == nil)
            client.networkChanged(isAvailable: false)
            #expect(try await client.fetchObject("/a/1", policy: policy) == nil)
        }
    }

    @Test("an unchanged resource needs one answer without a body, and is fresh again") func conditional() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a/1", "{\"n\":1}")
            let client = try bench.start()
            let policy = SyncPolicy(expirationPolicy: .expireAfter, expireAfter: .seconds(60))
            _ = try await client.fetchObject("/a/1", policy: policy)
            bench.pass(100)
            let cached = SyncPolicy(fetchPolicy: .fetchFromCache)
            #expect(try await client.fetchObject("/a/1", policy: cached)?.isExpired == true)
            _ = bench.backend.drainRequests()
            #expect(try await client.fetchObject("/a/1", policy: policy)?.body == bytes("{\"n\":1}"))
            #expect(bench.backend.drainRequests().map(\.ifNoneMatch) == [bench.backend.tag("/a/1")])
            #expect(try await client.fetchObject("/a/1", policy: cached)?.isExpired == false)
            #expect(bench.told.drain().isEmpty)
        }
    }

    @Test("a resource that the service no longer has is removed, and the app is notified") func gone() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a/1", "{}")
            let client = try bench.start()
            _ = try await client.fetchObject("/a/1")
            bench.backend.remove("/a/1")
            #expect(try await client.fetchObject("/a/1") == nil)
            #expect(bench.told.drain() == [.changed("/a/1", nil)])
            client.networkChanged(isAvailable: false)
            #expect(try await client.fetchObject("/a/1") == nil)
        }
    }

    @Test("a changed copy is reported, a new one is not") func changes() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a/1", "1")
            let client = try bench.start()
            _ = try await client.fetchObject("/a/1")
            #expect(bench.told.drain().isEmpty)
            bench.backend.set("/a/1", "2")
            _ = try await client.fetchObject("/a/1")
            #expect(bench.told.drain() == [.changed("/a/1", "2")])
        }
    }

    @Test("a network failure is detected by a failed request: copies serve, and no request is tried for a while")
    func failures() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a/1", "{}")
            let client = try bench.start()
            _ = try await client.fetchObject("/a/1")
            bench.transport.network = .isCut
            #expect(try await client.fetchObject("/a/1")?.isFromCache == true)
            #expect(client.status == .offline)
            #expect(try await client.fetchObject("/a/1", policy: SyncPolicy(fetchPolicy: .fetchFromService)) == nil)
            bench.transport.network = .works
            #expect(try await client.fetchObject("/a/1")?.isFromCache == true)
            bench.pass(1)
            #expect(try await client.fetchObject("/a/1")?.isFromCache == false)
            #expect(client.status == .online)
        }
    }

    @Test("an unavailable service counts as offline; a refusal is an error")
    func refusals() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a/1", "{}")
            let client = try bench.start()
            _ = try await client.fetchObject("/a/1")
            bench.backend.refuse("GET", 503)
            #expect(try await client.fetchObject("/a/1")?.isFromCache == true)
            bench.pass(2)
            bench.backend.refuse("GET", 500)
            await #expect { try await client.fetchObject("/a/1") } throws: { ($0 as? ResourceError)?.status == 500 }
            bench.backend.refuse("GET", 401)
            await #expect {
                try await client.fetchObject("/a/1")
            } throws: { ($0 as? ResourceError)?.code == .signInNeeded }
            await #expect {
                try await client.fetchObject("/a/1", policy: SyncPolicy(expirationPolicy: .expireAfter))
            } throws: { ($0 as? ResourceError)?.code == .invalidArgument }
        }
    }

    @Test("a collection's items are cached separately, with their own tags; pages are separate")
    func collections() async throws {
        try await Bench.with { bench in
            for number in 1...5 { bench.backend.set("/a/\(number)", "{\"n\":\(number)}") }
            let client = try bench.start()
            let all = try #require(try await client.fetchCollection("/a"))
            #expect(all.items.map(\.uri) == (1...5).map { "/a/\($0)" })
            #expect(all.items[2].etag == bench.backend.tag("/a/3"))
            let page = try await client.fetchCollection(
                "a", limit: 2, offset: 1, orderBy: [SortKey("n", isDescending: true)])
            #expect(bench.backend.drainRequests().last?.uri == "/a?limit=2&offset=1&orderBy=n:desc")
            #expect(page?.items.count == 2)
            client.networkChanged(isAvailable: false)
            #expect(try await client.fetchObject("/a/4")?.body == bytes("{\"n\":4}"))
            #expect(try await client.fetchCollection("/a")?.items.map(\.uri) == all.items.map(\.uri))
            #expect(
                try await client.fetchCollection("a", limit: 2, offset: 1, orderBy: [SortKey("n", isDescending: true)])?
                    .items.map(\.uri) == page?.items.map(\.uri))
            #expect(try await client.fetchCollection("/a", limit: 3) == nil)
            // A collection that lacks an item is incomplete.
            try await client.evict("/a/2")
            #expect(try await client.fetchCollection("/a") == nil)
        }
    }

    @Test("an empty collection is a result online, and a miss in the cache under ON_CACHE_MISS")
    func empty() async throws {
        try await Bench.with { bench in
            let client = try bench.start()
            #expect(try await client.fetchCollection("/empty")?.items.isEmpty == true)
            let cached = SyncPolicy(fetchPolicy: .fetchFromServiceOnCacheMiss)
            _ = bench.backend.drainRequests()
            _ = try await client.fetchCollection("/empty", policy: cached)
            #expect(bench.backend.drainRequests().count == 1)
            #expect(client.cacheMissCount == 1)
            client.networkChanged(isAvailable: false)
            #expect(try await client.fetchCollection("/empty", policy: cached) == nil)
        }
    }

    @Test("an item missing from a whole collection is removed, unless it is edited; a page removes no other item")
    func shrinking() async throws {
        try await Bench.with { bench in
            for number in 1...4 { bench.backend.set("/a/\(number)", "{\"n\":\(number)}") }
            let client = try bench.start()
            _ = try await client.fetchCollection("/a")
            client.networkChanged(isAvailable: false)
            _ = try await client.update("/a/2", body: bytes("{\"n\":20}"))
            bench.backend.remove("/a/1")
            bench.backend.remove("/a/2")
            client.networkChanged(isAvailable: true)
            _ = try await client.fetchCollection("/a", limit: 1)
            #expect(bench.told.drain().isEmpty)
            #expect(try await client.fetchCollection("/a")?.items.map(\.uri) == ["/a/3", "/a/4"])
            #expect(
                Set(bench.told.drain()) == [.changed("/a", nil), .changed("/a/1", nil), .changed("/a/2", "{\"n\":20}")])
            #expect(try await client.loadOfflineResources().map(\.uri) == ["/a/2"])
        }
    }

    @Test("files have their own defaults, and a header can turn an object into a file") func files() async throws {
        try await Bench.with { bench in
            bench.backend.set("/photo", "bytes")
            let client = try bench.start()
            let file = try #require(try await client.fetchFile("/photo"))
            #expect(file.kind == .file && file.policy == .file && file.body == bytes("bytes"))
            bench.backend.state.withLock { $0.headers["Oracle-Mobile-Sync-Resource-Type"] = "file" }
            bench.backend.set("/other", "x")
            #expect(try await client.fetchObject("/other")?.policy == .file)
            // A day later the file has expired, and is removed at the next start.
            bench.pass(86_401)
            let cached = SyncPolicy(fetchPolicy: .fetchFromCache)
            #expect(try await client.fetchFile("/photo", policy: cached)?.isExpired == true)
            #expect(try await bench.start().fetchFile("/photo", policy: cached) == nil)
        }
    }

    @Test(
        "a policy given with a fetch applies to the delete, whether the answer is 200 or 304",
        arguments: [true, false])
    func policyBeforeDelete(_ isChanged: Bool) async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "0")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            for (number, policy) in [UpdatePolicy.updateIfOnline, .queueIfOffline].enumerated() {
                client.networkChanged(isAvailable: true)
                if isChanged { bench.backend.set("/a", "\(number + 1)") }
                _ = try await client.fetchObject("/a", policy: SyncPolicy(updatePolicy: policy))
                let news: [Told.Call] = isChanged ? [.changed("/a", "\(number + 1)")] : []
                #expect(bench.told.drain() == news)
                client.networkChanged(isAvailable: false)
                if policy == .updateIfOnline {
                    await #expect {
                        try await client.delete("/a")
                    } throws: { ($0 as? ResourceError)?.code == .offline }
                }
            }
            try await client.delete("/a")
            #expect(try await client.loadOfflineResources().map { $0.edits.map(\.kind) } == [[.delete]])
            #expect(try await client.fetchObject("/a") == nil)
        }
    }

    @Test("headers of an answer override the request: no store, expiry and eviction at a time")
    func headers() async throws {
        try await Bench.with { bench in
            for path in ["/a", "/b", "/c"] { bench.backend.set(path, "{}") }
            let client = try bench.start()
            let request = SyncPolicy(expirationPolicy: .neverExpire, noCache: false)
            bench.backend.state.withLock { $0.headers = ["MSS-Sync-No-Store": "true"] }
            _ = try await client.fetchObject("/a", policy: request)
            let date = Date.now.addingTimeInterval(3_600)
            bench.backend.state.withLock { $0.headers = ["MSS-Sync-Expires": Self.header(date)] }
            let expiring = try await client.fetchObject("/b", policy: request)
            bench.backend.state.withLock { $0.headers = ["Oracle-Mobile-Sync-Evict": Self.header(date)] }
            let evicting = try await client.fetchObject("/c", policy: request)
            #expect(expiring?.policy.expirationPolicy == .expireAfter)
            #expect(expiring?.policy.evictionPolicy == .manualEviction)
            #expect(evicting?.policy.evictionPolicy == .evictOnExpiryAtStartup)
            let cached = SyncPolicy(fetchPolicy: .fetchFromCache)
            bench.pass(3_590)
            #expect(try await client.fetchObject("/a", policy: cached) == nil)
            #expect(try await client.fetchObject("/b", policy: cached)?.isExpired == false)
            bench.pass(20)
            #expect(try await client.fetchObject("/b", policy: cached)?.isExpired == true)
            let next = try bench.start()
            #expect(try await next.fetchObject("/b", policy: cached)?.isExpired == true)
            #expect(try await next.fetchObject("/c", policy: cached) == nil)
        }
    }

    @Test(
        "no-store for a cached resource, by 200 or 304: the caller gets the body and the copy is removed",
        arguments: [true, false])
    func noStoreLater(_ isChanged: Bool) async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "0")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            if isChanged { bench.backend.set("/a", "1") }
            bench.backend.state.withLock { $0.headers = ["MSS-Sync-No-Store": "true"] }
            let fetched = try await client.fetchObject("/a", policy: SyncPolicy(fetchPolicy: .fetchFromService))
            #expect(fetched?.body == Array((isChanged ? "1" : "0").utf8))
            #expect(try await client.fetchObject("/a", policy: SyncPolicy(fetchPolicy: .fetchFromCache)) == nil)
        }
    }

    private static func header(_ date: Date) -> String {
        let format = DateFormatter()
        format.locale = Locale(identifier: "en_US_POSIX")
        format.timeZone = TimeZone(identifier: "GMT")
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return format.string(from: date)
    }

    @Test("EXPIRE_ON_RESTART depends on starts of the app, not on time") func restart() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "{}")
            let cached = SyncPolicy(fetchPolicy: .fetchFromCache)
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            bench.pass(1e8)
            #expect(try await client.fetchObject("/a", policy: cached)?.isExpired == false)
            #expect(try await bench.start().fetchObject("/a", policy: cached)?.isExpired == true)
        }
    }

    @Test("data of one user is never given to another, and waits for its user") func users() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a/1", "{\"of\":\"u1\"}")
            let client = try bench.start(user: "u1")
            _ = try await client.fetchCollection("/a")
            client.networkChanged(isAvailable: false)
            _ = try await client.update("/a/1", body: bytes("{\"of\":\"me\"}"))
            _ = try await client.create(in: "/a", body: bytes("{}"))
            for other in ["u2", nil] {
                try client.bind(userID: other)
                #expect(try await client.fetchObject("/a/1") == nil)
                #expect(try await client.fetchCollection("/a") == nil)
                let query = ResourceQuery("of", .notEqual, .null)
                #expect(try await client.fetchCollection("/a", queryFor: [query]) == nil)
                #expect(try await client.loadOfflineResources().isEmpty)
                client.networkChanged(isAvailable: true)
                _ = bench.backend.drainRequests()
                #expect(try await client.synchronise() == SynchronisationSummary())
                #expect(bench.backend.drainRequests().isEmpty)
                client.networkChanged(isAvailable: false)
            }
            try client.bind(userID: "u1")
            #expect(try await client.fetchObject("/a/1")?.body == bytes("{\"of\":\"me\"}"))
            #expect(try await client.loadOfflineResources().count == 2)
        }
    }

    @Test("a sign-in during a fetch: the new user does not get the answer, the former one has it")
    func userChange() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "{}")
            let client = try bench.start(user: "u1")
            bench.transport.beforeAnswer { _ in try? client.bind(userID: "u2") }
            await #expect { try await client.fetchObject("/a") } throws: {
                ($0 as? ResourceError)?.code == .userChanged
            }
            #expect(bench.backend.drainRequests().map(\.authorization) == ["Bearer u1"])
            bench.transport.beforeAnswer(nil)
            client.networkChanged(isAvailable: false)
            #expect(try await client.fetchObject("/a") == nil)
            try client.bind(userID: "u1")
            #expect(try await client.fetchObject("/a") != nil)
        }
    }

    @Test("when the cache is full nothing more is stored, and fetches continue") func full() async throws {
        try await Bench.with { bench in
            let large = "\"" + String(repeating: "x", count: 30_000) + "\""
            for number in 1...5 { bench.backend.set("/a/\(number)", large) }
            let client = try bench.start { $0.maxStoreSize = 100_000 }
            for number in 1...5 {
                #expect(try await client.fetchObject("/a/\(number)")?.body.count == large.utf8.count)
            }
            client.networkChanged(isAvailable: false)
            var there: [Int] = []
            for number in 1...5 where try await client.fetchObject("/a/\(number)") != nil { there.append(number) }
            #expect(there == [1, 2, 3])
            await #expect {
                try await client.update("/a/1", body: bytes(large))
            } throws: { ($0 as? ResourceError)?.code == .storeFull }
            #expect(try await client.loadOfflineResources().isEmpty)
            // A collection with missing items is not returned.
            client.networkChanged(isAvailable: true)
            #expect(try await client.fetchCollection("/a")?.items.count == 5)
            client.networkChanged(isAvailable: false)
            #expect(try await client.fetchCollection("/a") == nil)
            try await client.evictAll()
            _ = try await client.update("/a/1", body: bytes(large))
            #expect(try await client.loadOfflineResources().count == 1)
        }
    }

    @Test("a version that is too large for the cache removes the old one too") func tooLarge() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "\"small\"")
            let client = try bench.start { $0.maxStoreSize = 10_000 }
            _ = try await client.fetchObject("/a")
            bench.backend.set("/a", "\"" + String(repeating: "x", count: 20_000) + "\"")
            #expect(try await client.fetchObject("/a")?.body.count == 20_002)
            client.networkChanged(isAvailable: false)
            #expect(try await client.fetchObject("/a") == nil)
        }
    }

    @Test("queryFor of a collection fetch filters the local copies only, online too, with several tests and edits")
    func queries() async throws {
        try await Bench.with { bench in
            for number in 1...4 { bench.backend.set("/a/\(number)", "{\"n\":\(number),\"in\":{\"s\":\"x\(number)\"}}") }
            let client = try bench.start()
            let all = ResourceQuery("n", .greater, .number(0))
            #expect(try await client.fetchCollection("/a", queryFor: [all]) == nil)
            #expect(bench.backend.drainRequests().isEmpty)
            _ = try await client.fetchCollection("/a", limit: 3)
            _ = bench.backend.drainRequests()
            client.networkChanged(isAvailable: false)
            _ = try await client.patch("/a/1", with: .object(["n": .number(9)]))
            try await client.delete("/a/2")
            _ = try await client.create(in: "/a", body: bytes("{\"n\":7}"))
            client.networkChanged(isAvailable: true)
            func found(_ tests: ResourceQuery..., limit: Int? = nil, orderBy: [SortKey] = []) async throws -> [Int] {
                let found = try await client.fetchCollection("a", queryFor: tests, limit: limit, orderBy: orderBy)
                return found?.items.compactMap { item in item.json?["n"]?.wholeNumber.map { Int($0) } } ?? []
            }
            let (many, third) = (
                ResourceQuery("n", .greater, .number(3)), ResourceQuery("in.s", .endsWith, .text("3"))
            )
            #expect(try await found(many) == [9, 7])
            #expect(try await found(third) == [3])
            // Several tests must all hold; the matching items are sorted and cut.
            #expect(try await found(many, ResourceQuery("in.s", .equal, .text("x1"))) == [9])
            #expect(try await found(many, third) == [])
            #expect(try await found(all, orderBy: [SortKey("n")]) == [3, 7, 9])
            #expect(try await found(all, limit: 2, orderBy: [SortKey("n", isDescending: true)]) == [9, 7])
            #expect(try await found(all, orderBy: [SortKey("in.s"), SortKey("n")]) == [7, 9, 3])
            #expect(bench.backend.drainRequests().isEmpty)
        }
    }

    @Test("concurrent callers get the service's data, and the cache is consistent afterwards")
    func concurrent() async throws {
        try await Bench.with { bench in
            for number in 0..<20 { bench.backend.set("/a/\(number)", "{\"n\":\(number)}") }
            let client = try bench.start()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for call in 0..<200 {
                    group.addTask {
                        let found = try await client.fetchObject("/a/\(call % 20)")
                        #expect(found?.json?["n"] == .integer(Int64(call % 20)))
                    }
                    if call % 20 == 0 { group.addTask { _ = try await client.fetchCollection("/a") } }
                }
                try await group.waitForAll()
            }
            client.networkChanged(isAvailable: false)
            #expect(try await client.fetchCollection("/a")?.items.count == 20)
        }
    }

    @Test("an answer that was overtaken does not replace a newer version") func overtaken() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "1")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            bench.backend.set("/a", "2")
            bench.transport.beforeAnswer { request in
                guard request.method == "GET" else { return }
                bench.transport.beforeAnswer(nil)
                // While the answer with 2 is in transit, 3 is written.
                _ = try? await client.update(
                    "/a", body: bytes("3"), policy: SyncPolicy(conflictResolutionPolicy: .clientWins))
            }
            _ = try await client.fetchObject("/a")
            let copy = try await client.fetchObject("/a", policy: SyncPolicy(fetchPolicy: .fetchFromCache))
            #expect(copy?.body == bytes("3") && copy?.etag == bench.backend.tag("/a"))
        }
    }
}
