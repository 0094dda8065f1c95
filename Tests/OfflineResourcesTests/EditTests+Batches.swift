import Synchronization
import Testing

@testable import OfflineResources

/// Edits in one request.
extension EditTests {
    private func offlineEdits(_ bench: Bench) async throws -> ResourceClient {
        bench.backend.set("/a/1", "{\"n\":1}")
        bench.backend.set("/a/2", "{\"n\":1}")
        let client = try bench.start()
        _ = try await client.fetchCollection("/a")
        client.networkChanged(isAvailable: false)
        _ = try await client.update("/a/1", body: bytes("{\"n\":2}"))
        try await client.delete("/a/2")
        _ = try await client.create(in: "/a", body: bytes("{\"n\":3}"))
        bench.backend.set("/a/2", "{\"n\":9}")
        client.networkChanged(isAvailable: true)
        _ = bench.backend.drainRequests()
        return client
    }

    @Test("edits are sent in one request where the backend has announced batches, each with its own answer")
    func batch() async throws {
        try await Bench.with { bench in
            bench.backend.state.withLock {
                $0.takesBatches = true
                $0.headers["MSS-Sync-Batch"] = "/api/batch"
            }
            let client = try await offlineEdits(bench)
            let summary = try await client.synchronise()
            #expect(summary.applied == 2 && summary.conflicts == 1)
            // The conflict's version is fetched.
            #expect(bench.backend.drainRequests().map { "\($0.method) \($0.uri)" } == ["POST /batch", "GET /a/2"])
            #expect(bench.backend.body("/a/1") == "{\"n\":2}" && bench.backend.body("/a/101") == "{\"n\":3}")
            #expect(try await client.conflict(of: "/a/2")?.server == bytes("{\"n\":9}"))
            #expect(bench.told.drain().filter { if case .synchronized = $0 { true } else { false } }.count == 3)
        }
    }

    @Test("a batch with a lost answer is repeated, and no edit is applied twice") func lostBatch() async throws {
        try await Bench.with { bench in
            bench.backend.state.withLock {
                $0.takesBatches = true
                $0.headers["MSS-Sync-Batch"] = "/batch"
            }
            let client = try await offlineEdits(bench)
            bench.transport.network = .losesAnswers
            #expect(try await client.synchronise().left == 3)
            bench.transport.network = .works
            bench.pass(10)
            _ = try await client.synchronise()
            #expect(bench.backend.drainRequests().filter { $0.uri == "/batch" }.count == 2)
            #expect(bench.backend.state.withLock { $0.entries.count } == 3)
        }
    }

    @Test("an edit without a result in a batch's answer is sent alone; a backend without batches gets single edits")
    func partialBatch() async throws {
        try await Bench.with { bench in
            bench.backend.state.withLock { ($0.takesBatches, $0.mostResults) = (true, 1) }
            let client = try await offlineEdits(bench)
            let second = try bench.start { $0.batchPath = "batch" }
            #expect(try await second.synchronise().applied == 2)
            #expect(bench.backend.drainRequests().map(\.method) == ["POST", "DELETE", "GET", "POST"])
            #expect(bench.backend.body("/a/102") == nil)
            _ = client
        }
        try await Bench.with { bench in
            _ = try await offlineEdits(bench)
            bench.backend.refuse("POST", 404)
            let client = try bench.start { $0.batchPath = "/batch" }
            let summary = try await client.synchronise()
            #expect(summary.applied == 2 && summary.conflicts == 1)
            #expect(
                bench.backend.drainRequests().map { "\($0.method) \($0.uri)" } == [
                    "POST /batch", "PUT /a/1", "DELETE /a/2", "GET /a/2", "POST /a",
                ])
        }
    }
}
