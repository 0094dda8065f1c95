import Foundation
import GRDB
import MobileSync
import Testing

@testable import OfflineResources

@Suite("Observing resources", .timeLimit(.minutes(2))) struct ObservationTests {
    private typealias Values<Element: Sendable> = ResourceObservation<Element>.AsyncIterator

    /// Reads until a value fulfils the condition.
    private func next<Element: Sendable>(
        of values: Values<Element>, where holds: (Element) -> Bool
    ) async throws -> Element {
        while let value = try await values.next() { if holds(value) { return value } }
        throw Unexpected("the observation ended")
    }

    @Test("an observation has the current value, then each change: of a fetch, an own edit, its answer and a push")
    func object() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "{\"n\":1}")
            let client = try bench.start()
            let values = try client.observe("/a").makeAsyncIterator()
            #expect(try await values.next() == .some(nil))
            _ = try await client.fetchObject("/a")
            #expect(try await next(of: values) { $0 != nil }?.body == bytes("{\"n\":1}"))
            client.networkChanged(isAvailable: false)
            _ = try await client.update("/a", body: bytes("{\"n\":2}"))
            let edited = try await next(of: values) { $0?.hasOfflineUpdates == true }
            #expect(edited?.body == bytes("{\"n\":2}"))
            client.networkChanged(isAvailable: true)
            _ = try await client.synchronise()
            let answered = try await next(of: values) { $0?.hasOfflineUpdates == false }
            #expect(answered?.body == bytes("{\"n\":2}") && answered?.etag == bench.backend.tag("/a"))
            try await client.take(
                push: bytes(#"{"uri":"/a","etag":"\"x\"","action":"refresh","body":{"n":3}}"#), userID: "u1",
                pushedAt: .distantFuture)
            #expect(try await next(of: values) { $0?.etag == "\"x\"" }?.body == bytes("{\"n\":3}"))
            try await client.delete("/a")
            #expect(try await next(of: values) { $0 == nil } == nil)
        }
    }

    @Test("a resource that was created offline is observed by its temporary URI, also when the backend has named it")
    func created() async throws {
        try await Bench.with { bench in
            let client = try bench.start()
            client.networkChanged(isAvailable: false)
            let created = try #require(try await client.create(in: "/a", body: bytes("{}")))
            let values = try client.observe(created.uri).makeAsyncIterator()
            #expect(try await values.next()??.uri == created.uri)
            client.networkChanged(isAvailable: true)
            _ = try await client.synchronise()
            #expect(try await next(of: values) { $0?.uri == "/a/101" }?.hasOfflineUpdates == false)
        }
    }

    @Test("a collection is observed with its items, own creations and deletions included, also as a query")
    func collection() async throws {
        try await Bench.with { bench in
            for number in 1...3 { bench.backend.set("/a/\(number)", "{\"n\":\(number)}") }
            let client = try bench.start()
            let all = try client.observeCollection("/a").makeAsyncIterator()
            let large = try client.observeCollection(
                "/a", queryFor: [ResourceQuery("n", .greater, .number(1))], limit: 2, orderBy: [SortKey("n")]
            ).makeAsyncIterator()
            #expect(try await all.next() == .some(nil))
            #expect(try await large.next() == .some(nil))
            _ = try await client.fetchCollection("/a")
            #expect(try await next(of: all) { $0 != nil }?.items.count == 3)
            client.networkChanged(isAvailable: false)
            _ = try await client.create(in: "/a", body: bytes("{\"n\":9}"))
            #expect(try await next(of: all) { $0?.items.count == 4 }?.items.last?.hasOfflineUpdates == true)
            try await client.delete("/a/2")
            #expect(try await next(of: all) { $0?.items.count == 3 } != nil)
            let found = try await next(of: large) { $0?.items.map { $0.json?["n"] } == [.integer(3), .integer(9)] }
            #expect(found?.isFromCache == true)
        }
    }

    @Test("values of the app's types are observed, and a body of another form ends the observation with an error")
    func typed() async throws {
        struct Item: Decodable, Sendable { let n: Int }
        try await Bench.with { bench in
            bench.backend.set("/a", "{\"n\":1}")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            let values = try client.observe(Item.self, "/a").makeAsyncIterator()
            #expect(try await values.next()??.value.n == 1)
            _ = try await client.update("/a", body: bytes("{}"))
            await #expect {
                while try await values.next() != nil {}
            } throws: { ($0 as? ResourceError)?.code == .decoding }
        }
    }

    @Test("a slow consumer gets the newest value, not every one") func bounded() async throws {
        try await Bench.with { bench in
            let client = try bench.start()
            client.networkChanged(isAvailable: false)
            let values = try client.observe("/a").makeAsyncIterator()
            #expect(try await values.next() == .some(nil))
            for number in 1...50 { _ = try await client.update("/a", body: bytes("\(number)")) }
            var count = 0
            while try await values.next()??.body != bytes("50") { count += 1 }
            #expect(count < 50)
        }
    }

    @Test("an observation ends when its task is cancelled, and with an error when another user is bound")
    func ends() async throws {
        try await Bench.with { bench in
            let client = try bench.start()
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    for try await _ in try client.observe("/a") { withUnsafeCurrentTask { $0?.cancel() } }
                }
                try await group.waitForAll()
            }
            let values = try client.observe("/a").makeAsyncIterator()
            #expect(try await values.next() == .some(nil))
            try client.bind(userID: "u1")
            try client.bind(userID: "u2")
            await #expect {
                while try await values.next() != nil {}
            } throws: { ($0 as? ResourceError)?.code == .userChanged }
            #expect(throws: ResourceError.self) { try client.observe("/a/../b") }
        }
    }

    @Test("a read does not wait for a write that is in progress") func readBesideWrite() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "1")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            let (started, start) = AsyncStream.makeStream(of: Void.self)
            let isRead = DispatchSemaphore(value: 0)
            async let writing: Void = client.store.write("test") { transaction in
                try transaction.context.db.execute(sql: "UPDATE resource SET etag = 'new'")
                start.yield()
                // Until the copy was read beside this transaction.
                #expect(isRead.wait(timeout: .now() + 20) == .success)
            }
            for await _ in started { break }
            let cached = SyncPolicy(fetchPolicy: .fetchFromCache)
            #expect(try await client.fetchObject("/a", policy: cached)?.etag == bench.backend.tag("/a"))
            isRead.signal()
            try await writing
            #expect(try await client.fetchObject("/a", policy: cached)?.etag == "new")
        }
    }
}
