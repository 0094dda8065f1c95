import Synchronization
import Testing

@testable import OfflineResources

/// The places at which edits create resources.
extension EditTests {
    @Test("a PUT that is answered with 201 and another place moves the resource there, like a create")
    func putElsewhere() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a/1", "{}")
            bench.backend.state.withLock { $0.places["/a/mine"] = "/a/9" }
            let client = try bench.start()
            _ = try await client.fetchCollection("/a")
            let updated = try #require(try await client.update("/a/mine", body: bytes("{\"n\":1}")))
            #expect(updated.uri == "/a/9" && updated.etag == bench.backend.tag("/a/9"))
            #expect(bench.backend.body("/a/9") == "{\"n\":1}")
            // Both URIs work, and the next edit goes to the new place, with its tag.
            _ = bench.backend.drainRequests()
            #expect(try await client.fetchObject("/a/mine")?.uri == "/a/9")
            _ = try await client.update("a/mine", body: bytes("{\"n\":2}"))
            let asked = bench.backend.drainRequests()
            #expect(asked.map { "\($0.method) \($0.uri)" } == ["GET /a/9", "PUT /a/9"])
            #expect(asked.last?.ifMatch == updated.etag)
            client.networkChanged(isAvailable: false)
            #expect(try await client.fetchCollection("/a")?.items.map(\.uri) == ["/a/1", "/a/9"])
            #expect(bench.told.drain() == [.changed("/a/9", "{\"n\":2}")])
            // When the device no longer has the resource, the former URI is the service's again.
            client.networkChanged(isAvailable: true)
            try await client.evict("/a/mine")
            bench.backend.set("/a/mine", "{\"n\":3}")
            #expect(try await client.fetchObject("/a/mine")?.uri == "/a/mine")
            #expect(try await client.fetchObject("/a/9")?.body == bytes("{\"n\":2}"))
            let cached = SyncPolicy(fetchPolicy: .fetchFromCache)
            #expect(try await client.fetchObject("/a/mine", policy: cached)?.uri == "/a/mine")
        }
    }

    @Test(
        "resources created below it offline move with it, and the app gets the new places, in a batch or one at a time",
        arguments: [true, false])
    func putElsewhereOffline(_ isBatch: Bool) async throws {
        try await Bench.with { bench in
            bench.backend.state.withLock {
                $0.takesBatches = isBatch
                $0.places["/a/mine"] = "/a/9"
            }
            let client = try bench.start { $0.batchPath = isBatch ? "/batch" : nil }
            client.networkChanged(isAvailable: false)
            _ = try await client.update("/a/mine", body: bytes("{\"n\":1}"))
            let note = try #require(try await client.create(in: "/a/mine/notes", body: bytes("{}")))
            _ = try await client.update("/a/mine", body: bytes("{\"n\":2}"))
            client.networkChanged(isAvailable: true)
            #expect(try await client.synchronise().applied == 3)
            // In a batch, the note was sent before its place was known.
            let notes = isBatch ? "/a/mine/notes" : "/a/9/notes"
            let requests = isBatch ? ["POST /batch"] : ["PUT /a/mine", "POST /a/9/notes"]
            #expect(bench.backend.drainRequests().map { "\($0.method) \($0.uri)" } == requests + ["PUT /a/9"])
            #expect(
                bench.told.drain() == [
                    .changed("/a/9", "{\"n\":2}"), .synchronized("/a/9", "{\"n\":2}"),
                    .synchronized("\(notes)/101", "{}"),
                    .synchronized("/a/9", "{\"n\":2}"),
                ])
            #expect(try await client.fetchObject(note.uri)?.uri == "\(notes)/101")
            #expect(try await client.loadOfflineResources().isEmpty)
        }
    }

    @Test(
        "existing resources stay, and so do those that Location places above or below itself",
        arguments: [("/a", "/versions/2", true), ("/a", "/a/versions/2", false), ("/a/mine", "/a", false)])
    func placesOfOthers(_ uri: String, _ place: String, _ isThere: Bool) async throws {
        try await Bench.with { bench in
            if isThere { bench.backend.set(uri, "{\"n\":1}") }
            bench.backend.state.withLock { $0.places[uri] = place }
            let client = try bench.start()
            _ = try await client.fetchObject(uri)
            let updated = try await client.update(uri, body: bytes("{\"n\":2}"))
            #expect(updated?.uri == uri && updated?.body == bytes("{\"n\":2}"))
            #expect(updated?.hasOfflineUpdates == false)
        }
    }

    @Test("a resource created after another item was deleted is added to the collection too")
    func createAfterDelete() async throws {
        try await Bench.with { bench in
            for number in 1...2 { bench.backend.set("/a/\(number)", "{}") }
            let client = try bench.start()
            _ = try await client.fetchCollection("/a")
            _ = try await client.create(in: "/a", body: bytes("{}"))
            try await client.delete("/a/1")
            #expect(try await client.create(in: "/a", body: bytes("{}"))?.uri == "/a/102")
            client.networkChanged(isAvailable: false)
            #expect(try await client.fetchCollection("/a")?.items.map(\.uri) == ["/a/2", "/a/101", "/a/102"])
        }
    }
}
