import Foundation
import MobileSync
import Testing

@testable import OfflineResources

/// Each test has the name of a sentence of Oracle's guide.
@Suite("The sentences of Oracle's data-offline guide", .timeLimit(.minutes(2))) struct GuideTests {
    private let cached = SyncPolicy(fetchPolicy: .fetchFromCache)

    @Test("an item fetched through a collection has the collection's policies and not the item path's: all of them")
    func collectionPolicies() async throws {
        try await Bench.with { bench in
            for number in 1...2 { bench.backend.set("/incidents/\(number)", "{\"n\":\(number)}") }
            let ofCollection = SyncPolicy(
                fetchPolicy: .fetchFromServiceOnCacheMiss, expirationPolicy: .expireAfter, expireAfter: .seconds(600),
                evictionPolicy: .evictOnExpiryAtStartup, updatePolicy: .queueIfOffline,
                conflictResolutionPolicy: .preserveConflict, noCache: false)
            let ofItem = SyncPolicy(
                fetchPolicy: .fetchFromService, expirationPolicy: .neverExpire, evictionPolicy: .manualEviction,
                updatePolicy: .updateIfOnline, conflictResolutionPolicy: .clientWins)
            let paths = [try PathPattern("/incidents"): ofCollection, try PathPattern("/incidents/*"): ofItem]
            let client = try bench.start { $0.policies.paths = paths }
            let items = try #require(try await client.fetchCollection("/incidents")).items
            let expected = EffectivePolicy.standard.overridden(by: [ofCollection])
            #expect(items.map(\.policy) == [expected, expected])
            // An edit of the item is queued, and another's change is not overwritten.
            client.networkChanged(isAvailable: false)
            _ = try await client.update("/incidents/1", body: bytes("{\"n\":10}"))
            bench.backend.set("/incidents/1", "{\"n\":11}")
            client.networkChanged(isAvailable: true)
            #expect(try await client.synchronise().conflicts == 1)
            #expect(bench.backend.body("/incidents/1") == "{\"n\":11}")
            // Also when the collection did not change since the last fetch.
            _ = try await client.fetchCollection("/incidents", policy: SyncPolicy(fetchPolicy: .fetchFromService))
            _ = bench.backend.drainRequests()
            let changed = SyncPolicy(fetchPolicy: .fetchFromService, conflictResolutionPolicy: .serverWins)
            let unchanged = try await client.fetchCollection("/incidents", policy: changed)
            #expect(bench.backend.drainRequests().map { $0.ifNoneMatch == nil } == [false])
            #expect(unchanged?.items.last?.policy.conflictResolutionPolicy == .serverWins)
        }
    }

    @Test("pinned edits go first, by their priority, and the order within a resource stays")
    func pinnedUploads() async throws {
        try await Bench.with { bench in
            for path in ["/low", "/plain", "/normal", "/high"] { bench.backend.set(path, "{}") }
            let client = try bench.start()
            for path in ["/low", "/plain", "/normal", "/high"] { _ = try await client.fetchObject(path) }
            try await client.pinResource("/low", .low)
            try await client.pinResource("/normal", .normal)
            try await client.pinResource("/high", .high)
            client.networkChanged(isAvailable: false)
            for path in ["/low", "/plain", "/normal", "/high", "/plain", "/high"] {
                _ = try await client.patch(path, with: .object(["n": .text(path)]))
            }
            client.networkChanged(isAvailable: true)
            _ = bench.backend.drainRequests()
            #expect(try await client.synchronise().applied == 6)
            #expect(
                bench.backend.drainRequests().map(\.uri) == [
                    "/high", "/high", "/normal", "/plain", "/plain", "/low",
                ])
        }
    }

    @Test("an edit that is made during the upload is sent in the same run, a stopped one is not tried twice")
    func uploadsDuringRun() async throws {
        try await Bench.with { bench in
            for path in ["/a", "/b", "/c"] { bench.backend.set(path, "{}") }
            let client = try bench.start()
            for path in ["/a", "/b", "/c"] { _ = try await client.fetchObject(path) }
            client.networkChanged(isAvailable: false)
            for path in ["/a", "/b"] { _ = try await client.update(path, body: bytes("{\"n\":1}")) }
            client.networkChanged(isAvailable: true)
            bench.backend.refuse("PUT", 400)
            bench.transport.beforeAnswer { request in
                guard request.method == "PUT", request.uri == "/b" else { return }
                bench.transport.beforeAnswer(nil)
                // An urgent edit from another task, below the numbers that were already sent.
                try? await client.pinResource("/c", .high)
                _ = try? await client.setOfflineEdit("/c", "{\"n\":2}")
            }
            let summary = try await client.synchronise()
            #expect(summary.refused == 1 && summary.applied == 2 && summary.left == 0)
            #expect(bench.backend.body("/c") == "{\"n\":2}")
            #expect(bench.backend.drainRequests().filter { $0.method == "PUT" }.map(\.uri) == ["/a", "/b", "/c"])
        }
    }

    @Test("cachedResourceChanged is called after the edit is marked: hasConflict is true in it")
    func conflictInCallback() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "{\"n\":1}")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            client.networkChanged(isAvailable: false)
            _ = try await client.update("/a", body: bytes("{\"n\":2}"))
            bench.backend.set("/a", "{\"n\":3}")
            client.networkChanged(isAvailable: true)
            #expect(try await client.synchronise().conflicts == 1)
            #expect(
                bench.told.drain() == [
                    .changed("/a", "{\"n\":2}", hasConflict: true),
                    .synchronized("/a", "{\"n\":2}", hasConflict: true),
                ])
        }
    }

    @Test("cachedResourceChanged is called for the app's own applied updates and deletes, not for what is newly cached")
    func ownUpdates() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a/1", "{\"n\":1}")
            let client = try bench.start()
            _ = try await client.fetchObject("/a/1")
            _ = try await client.update("/a/1", body: bytes("{\"n\":2}"))
            #expect(bench.told.drain() == [.changed("/a/1", "{\"n\":2}")])
            _ = try await client.create(in: "/a", body: bytes("{}"))
            #expect(bench.told.drain().isEmpty)
            client.networkChanged(isAvailable: false)
            try await client.delete("/a/1")
            #expect(bench.told.drain().isEmpty)
            client.networkChanged(isAvailable: true)
            _ = try await client.synchronise()
            #expect(bench.told.drain() == [.changed("/a/1", nil), .synchronized("/a/1", nil)])
        }
    }

    @Test("an empty collection is a miss only for the ON_CACHE_MISS policies", arguments: FetchPolicy.allCases)
    func emptyCollection(_ policy: FetchPolicy) async throws {
        try await Bench.with { bench in
            let client = try bench.start()
            #expect(try await client.fetchCollection("/empty")?.items.isEmpty == true)
            client.networkChanged(isAvailable: false)
            let request = SyncPolicy(fetchPolicy: policy)
            let empty = try await client.fetchCollection("/empty", policy: request)
            let isMiss: Set<FetchPolicy> = [
                .fetchFromService, .fetchFromServiceOnCacheMiss, .fetchFromServiceOnCacheMissOrExpiry,
            ]
            #expect((empty == nil) == isMiss.contains(policy))
            // An item created offline in a known-empty list can be seen.
            _ = try await client.create(in: "/empty", body: bytes("{\"n\":1}"))
            let one = try await client.fetchCollection("/empty", policy: request)
            #expect(one?.items.map(\.body) == (policy == .fetchFromService ? nil : [bytes("{\"n\":1}")]))
        }
    }

    @Test("uploads of files have SERVER_WINS and expire after 24 hours")
    func fileUploads() async throws {
        try await Bench.with { bench in
            let client = try bench.start()
            client.networkChanged(isAvailable: false)
            let photo = try #require(
                try await client.update("/photos/1", body: [1, 2, 3], contentType: "image/jpeg"))
            #expect(photo.kind == .file && photo.policy == .file)
            let created = try #require(
                try await client.create(in: "/photos", body: [4, 5], contentType: "image/jpeg"))
            #expect(created.kind == .file && created.policy == .file)
            let json = try #require(try await client.update("/a", body: bytes("{}")))
            #expect(json.kind == .item && json.policy == .standard)
            client.networkChanged(isAvailable: true)
            _ = try await client.synchronise()
            #expect(try await client.fetchFile("/photos/1", policy: cached)?.isExpired == false)
            bench.pass(86_401)
            #expect(try await client.fetchFile("/photos/1", policy: cached)?.isExpired == true)
            #expect(try await client.fetchObject("/a", policy: cached)?.isExpired == false)
        }
    }
}

extension ResourceClient {
    /// An edit as another task makes it while the network is cut.
    fileprivate func setOfflineEdit(_ uri: String, _ body: String) async throws -> StoredEdit? {
        let policy = EffectivePolicy.standard
        let draft = EditDraft(
            id: configuration.makeID(), uri: try ResourceURI(uri), kind: .update, body: bytes(body),
            contentType: "application/json", headers: [:], policy: policy, isOffline: true)
        return try await store.write("test") { try $0.edits.add(draft, owner: "u1", mayMerge: true) }
    }
}
