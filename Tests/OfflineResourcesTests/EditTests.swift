import Foundation
import MobileSync
import Synchronization
import Testing

@testable import OfflineResources

@Suite("Edits and conflicts", .timeLimit(.minutes(2))) struct EditTests {
    private let clientWins = SyncPolicy(conflictResolutionPolicy: .clientWins)
    private let serverWins = SyncPolicy(conflictResolutionPolicy: .serverWins)

    @Test("online, an edit is sent at once, with the last tag and a key of its own") func online() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a/1", "{\"n\":1}")
            let client = try bench.start()
            let tag = try await client.fetchObject("/a/1")?.etag
            let updated = try await client.update("/a/1", body: bytes("{\"n\":2}"))
            #expect(updated?.body == bytes("{\"n\":2}") && updated?.etag == bench.backend.tag("/a/1"))
            #expect(updated?.hasOfflineUpdates == false)
            let patched = try await client.patch("/a/1", with: .object(["m": .number(3)]))
            #expect(patched?.body == bytes("{\"m\":3,\"n\":2}"))
            let created = try #require(try await client.create(in: "/a", body: bytes("{\"n\":5}")))
            #expect(created.uri == "/a/101" && created.etag == bench.backend.tag("/a/101"))
            try await client.delete("/a/1")
            #expect(bench.backend.body("/a/1") == nil)
            let asked = bench.backend.drainRequests().dropFirst()
            #expect(asked.map(\.method) == ["PUT", "PATCH", "POST", "DELETE"])
            #expect(asked.first?.ifMatch == tag && asked.dropFirst(2).first?.ifMatch == nil)
            #expect(Set(asked.compactMap(\.key)).count == 4)
            // Each applied change of a cached resource is reported, a created resource is not.
            #expect(
                bench.told.drain() == [
                    .changed("/a/1", "{\"n\":2}"), .changed("/a/1", "{\"m\":3,\"n\":2}"), .changed("/a/1", nil),
                ])
        }
    }

    @Test("offline, edits wait, are visible, survive a restart, and are sent in order when the network is back")
    func queue() async throws {
        try await Bench.with { bench in
            for number in 1...3 { bench.backend.set("/a/\(number)", "{\"n\":\(number)}") }
            let first = try bench.start()
            _ = try await first.fetchCollection("/a")
            first.networkChanged(isAvailable: false)
            _ = try await first.update("/a/1", body: bytes("{\"n\":10}"))
            let created = try #require(try await first.create(in: "/a", body: bytes("{\"n\":40}")))
            #expect(created.hasOfflineUpdates && created.fetchedAt == nil && created.etag == nil)
            _ = try await first.patch("/a/2", with: .object(["x": .boolean(true)]))
            try await first.delete("/a/3")
            _ = try await first.update(created.uri, body: bytes("{\"n\":41}"))
            #expect(try await first.fetchObject("/a/3") == nil)
            let seen = try await first.fetchCollection("/a")
            #expect(seen?.items.map { text($0.body) } == ["{\"n\":10}", "{\"n\":2,\"x\":true}", "{\"n\":41}"])
            let client = try bench.start()
            #expect(
                try await client.loadOfflineResources().map { $0.edits.map(\.kind) } == [
                    [.update], [.create, .update], [.patch], [.delete],
                ])
            _ = bench.backend.drainRequests()
            let summary = try await client.synchronise()
            #expect(summary.applied == 5 && summary.left == 0)
            #expect(
                bench.backend.drainRequests().map { "\($0.method) \($0.uri)" } == [
                    "PUT /a/1", "POST /a", "PATCH /a/2", "DELETE /a/3", "PUT /a/101",
                ])
            #expect(bench.backend.body("/a/101") == "{\"n\":41}")
            #expect(
                bench.told.drain() == [
                    .changed("/a/1", "{\"n\":10}"), .changed("/a/2", "{\"n\":2,\"x\":true}"), .changed("/a/3", nil),
                    .changed("/a/101", "{\"n\":41}"),
                    .synchronized("/a/1", "{\"n\":10}"), .synchronized("/a/101", "{\"n\":41}"),
                    .synchronized("/a/2", "{\"n\":2,\"x\":true}"), .synchronized("/a/3", nil),
                    .synchronized("/a/101", "{\"n\":41}"),
                ])
            // The place from the device still works beside the service's, and the collection contains it.
            #expect(try await client.fetchObject(created.uri)?.uri == "/a/101")
            client.networkChanged(isAvailable: false)
            #expect(try await client.fetchCollection("/a")?.items.map(\.uri) == ["/a/1", "/a/2", "/a/101"])
        }
    }

    @Test("edits merge only when no other edit was made in between") func coalescing() async throws {
        try await Bench.with { bench in
            for number in 1...2 { bench.backend.set("/a/\(number)", "{}") }
            let client = try bench.start()
            _ = try await client.fetchCollection("/a")
            client.networkChanged(isAvailable: false)
            for value in 1...3 { _ = try await client.update("/a/1", body: bytes("{\"v\":\(value)}")) }
            _ = try await client.update("/a/2", body: bytes("{}"))
            _ = try await client.update("/a/1", body: bytes("{\"v\":4}"))
            let vain = try #require(try await client.create(in: "/a", body: bytes("{}")))
            try await client.delete(vain.uri)
            #expect(try await client.fetchObject(vain.uri) == nil)
            client.networkChanged(isAvailable: true)
            _ = bench.backend.drainRequests()
            _ = try await client.synchronise()
            #expect(bench.backend.drainRequests().map(\.body) == ["{\"v\":3}", "{}", "{\"v\":4}"])
            #expect(bench.told.drain().count == 6)
        }
    }

    @Test("UPDATE_IF_ONLINE fails offline, and nothing is stored") func updateIfOnline() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "1")
            let client = try bench.start()
            let policy = SyncPolicy(updatePolicy: .updateIfOnline)
            _ = try await client.fetchObject("/a", policy: policy)
            client.networkChanged(isAvailable: false)
            // By the policy that is saved with the resource.
            await #expect { try await client.update("/a", body: bytes("2")) } throws: { Self.code($0) == .offline }
            client.networkChanged(isAvailable: true)
            bench.transport.network = .isCut
            await #expect { try await client.delete("/a") } throws: { Self.code($0) == .offline }
            bench.pass(5)
            bench.transport.network = .losesAnswers
            await #expect { try await client.update("/a", body: bytes("2")) } throws: { Self.code($0) == .noAnswer }
            #expect(try await client.loadOfflineResources().isEmpty)
            #expect(bench.backend.body("/a") == "2")
            bench.transport.network = .works
            bench.pass(5)
            // An edit with an unknown result is checked.
            try await client.refresher.refresh()
            client.networkChanged(isAvailable: false)
            #expect(try await client.fetchObject("/a")?.body == bytes("2"))
            // A changed policy takes effect when it is saved.
            _ = try await client.update("/a", body: bytes("3"), policy: SyncPolicy(updatePolicy: .queueIfOffline))
            try await client.delete("/a")
            #expect(try await client.loadOfflineResources().count == 1)
        }
    }

    private static func code(_ error: any Error) -> ResourceError.Code? { (error as? ResourceError)?.code }

    @Test("an edit with a lost answer is repeated with its key, over a restart too, and applied once")
    func lostAnswer() async throws {
        try await Bench.with { bench in
            let first = try bench.start()
            bench.transport.network = .losesAnswers
            let created = try #require(try await first.create(in: "/a", body: bytes("{\"n\":1}")))
            #expect(created.hasOfflineUpdates)
            // The service may have applied it, so another edit does not merge with it.
            _ = try await first.update(created.uri, body: bytes("{\"n\":2}"))
            bench.transport.network = .works
            bench.pass(10)
            let client = try bench.start()
            _ = try await client.synchronise()
            let asked = bench.backend.drainRequests()
            #expect(asked.map(\.method) == ["POST", "POST", "PUT"])
            #expect(asked[0].key == asked[1].key && asked[1].key != asked[2].key)
            #expect(bench.backend.state.withLock { $0.entries.count } == 1)
            #expect(bench.backend.body("/a/101") == "{\"n\":2}")
        }
    }

    @Test("a backend without idempotency that already has the result of the edit is no conflict")
    func lostAnswerWithoutKeys() async throws {
        try await Bench.with { bench in
            bench.backend.state.withLock { $0.honoursKeys = false }
            bench.backend.set("/a", "{\"n\":1}")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            bench.transport.network = .losesAnswers
            _ = try await client.update("/a", body: bytes("{\"n\":2}"))
            bench.transport.network = .works
            bench.pass(10)
            let summary = try await client.synchronise()
            #expect(summary.applied == 1 && summary.conflicts == 0)
            #expect(try await client.loadOfflineResources().isEmpty)
        }
    }

    @Test("a service that is unavailable gets the edits later, in the same order") func later() async throws {
        try await Bench.with { bench in
            let client = try bench.start()
            client.networkChanged(isAvailable: false)
            for number in 1...3 { _ = try await client.update("/a/\(number)", body: bytes("\(number)")) }
            client.networkChanged(isAvailable: true)
            bench.backend.refuse("PUT", 503)
            #expect(try await client.synchronise().left == 3)
            #expect(bench.backend.drainRequests().count == 1)
            #expect(bench.told.drain().isEmpty)
            bench.pass(2)
            #expect(try await client.synchronise().applied == 3)
            #expect(bench.backend.drainRequests().map(\.uri) == ["/a/1", "/a/2", "/a/3"])
        }
    }

    // MARK: Conflicts

    /// A client with an edit of a resource that the service has changed too.
    private func conflicted(
        _ bench: Bench, _ policy: SyncPolicy = SyncPolicy(), deletedThere: Bool = false
    ) async throws -> ResourceClient {
        bench.backend.set("/a", "{\"n\":1}")
        let client = try bench.start()
        _ = try await client.fetchObject("/a", policy: policy)
        client.networkChanged(isAvailable: false)
        _ = try await client.update("/a", body: bytes("{\"n\":2}"))
        if deletedThere { bench.backend.remove("/a") } else { bench.backend.set("/a", "{\"n\":3}") }
        client.networkChanged(isAvailable: true)
        _ = bench.backend.drainRequests()
        return client
    }

    @Test("PRESERVE_CONFLICT keeps the edit and shows both versions, over a restart too") func preserve() async throws {
        try await Bench.with { bench in
            let first = try await conflicted(bench)
            #expect(try await first.synchronise().conflicts == 1)
            #expect(bench.told.drain().contains(.synchronized("/a", "{\"n\":2}", hasConflict: true)))
            let client = try bench.start()
            #expect(try await client.fetchObject("/a")?.hasConflict == true)
            let conflict = try #require(try await client.conflict(of: "/a"))
            #expect(conflict.local == bytes("{\"n\":2}") && conflict.server == bytes("{\"n\":3}"))
            #expect(conflict.serverETag == bench.backend.tag("/a"))
            // The conflict waits for a decision, and later edits belong to it.
            _ = bench.backend.drainRequests()
            #expect(try await client.synchronise() == SynchronisationSummary())
            _ = try await client.patch("/a", with: .object(["m": .number(4)]))
            #expect(bench.backend.drainRequests().isEmpty)
            #expect(try await client.conflict(of: "/a")?.local == bytes("{\"m\":4,\"n\":2}"))
            #expect(bench.backend.body("/a") == "{\"n\":3}")
            await #expect { try await client.resolveConflict("/b", .keepMine) } throws: { Self.code($0) == .noConflict }
        }
    }

    @Test("a conflict ends with the local version, the server's, or a merged one")
    func resolutions() async throws {
        for (resolution, expected) in [
            (ConflictResolution.keepMine, "{\"n\":2}"), (.takeTheirs, "{\"n\":3}"),
            (.merged(bytes("{\"n\":5}")), "{\"n\":5}"),
        ] {
            try await Bench.with { bench in
                let client = try await conflicted(bench)
                _ = try await client.synchronise()
                try await client.resolveConflict("/a", resolution)
                let resource = try await client.fetchObject("/a", policy: SyncPolicy(fetchPolicy: .fetchFromCache))
                #expect(resource?.hasConflict == false && resource?.body == bytes(expected))
                let summary = try await client.synchronise()
                #expect(summary.conflicts == 0)
                #expect(bench.backend.body("/a") == expected)
                #expect(try await client.loadOfflineResources().isEmpty)
            }
        }
    }

    @Test("a resolution applies to the versions that were shown: another change at the service is another conflict")
    func secondConflict() async throws {
        try await Bench.with { bench in
            let client = try await conflicted(bench)
            _ = try await client.synchronise()
            bench.backend.set("/a", "{\"n\":4}")
            try await client.resolveConflict("/a", .keepMine)
            #expect(try await client.synchronise().conflicts == 1)
            #expect(try await client.conflict(of: "/a")?.server == bytes("{\"n\":4}"))
            await #expect {
                try await client.resolveConflict("/a", .merged(bytes("no json")))
            } throws: { Self.code($0) == .invalidArgument }
        }
    }

    @Test("a refresh below an edit does not let the edit overwrite a version that it has not seen")
    func refreshUnderEdit() async throws {
        try await Bench.with { bench in
            let client = try await conflicted(bench)
            // The device has the newest version, and the edit is still based on the former one.
            #expect(try await client.fetchObject("/a")?.body == bytes("{\"n\":2}"))
            #expect(try await client.synchronise().conflicts == 1)
            #expect(bench.backend.body("/a") == "{\"n\":3}")
        }
    }

    @Test("SERVER_WINS drops the edit; CLIENT_WINS sends If-Match: *") func winners() async throws {
        try await Bench.with { bench in
            let client = try await conflicted(bench, serverWins)
            #expect(try await client.synchronise().dropped == 1)
            #expect(bench.told.drain().contains(.synchronized("/a", "{\"n\":3}")))
            #expect(bench.backend.body("/a") == "{\"n\":3}")
            #expect(try await client.loadOfflineResources().isEmpty)
        }
        try await Bench.with { bench in
            let client = try await conflicted(bench, clientWins)
            #expect(try await client.synchronise().applied == 1)
            #expect(bench.backend.drainRequests().map(\.ifMatch) == ["*"])
            #expect(bench.backend.body("/a") == "{\"n\":2}")
        }
    }

    @Test("a resource deleted at the service is a conflict without a server's version, and each policy applies")
    func deletedThere() async throws {
        try await Bench.with { bench in
            let client = try await conflicted(bench, deletedThere: true)
            #expect(try await client.synchronise().conflicts == 1)
            #expect(try await client.conflict(of: "/a")?.server == nil)
            try await client.resolveConflict("/a", .keepMine)
            #expect(try await client.synchronise().applied == 1)
            #expect(bench.backend.body("/a") == "{\"n\":2}")
        }
        try await Bench.with { bench in
            let client = try await conflicted(bench, deletedThere: true)
            _ = try await client.synchronise()
            try await client.resolveConflict("/a", .takeTheirs)
            #expect(try await client.fetchObject("/a") == nil)
            #expect(bench.backend.body("/a") == nil)
        }
        try await Bench.with { bench in
            let client = try await conflicted(bench, serverWins, deletedThere: true)
            #expect(try await client.synchronise().dropped == 1)
            #expect(try await client.fetchObject("/a") == nil)
        }
        try await Bench.with { bench in
            let client = try await conflicted(bench, clientWins, deletedThere: true)
            #expect(try await client.synchronise().applied == 1)
            let asked = bench.backend.drainRequests()
            #expect(asked.map(\.ifMatch) == ["*", nil])
            #expect(asked[0].key != asked[1].key)
            #expect(bench.backend.body("/a") == "{\"n\":2}")
        }
    }

    @Test("a conflict is recorded only when the server's version is on the device")
    func conflictOffline() async throws {
        try await Bench.with { bench in
            let client = try await conflicted(bench)
            bench.transport.beforeAnswer { request in
                if request.method == "PUT" { bench.backend.refuse("GET", 504) }
            }
            let summary = try await client.synchronise()
            #expect(summary.conflicts == 0 && summary.left == 1)
            bench.transport.beforeAnswer(nil)
            bench.pass(5)
            #expect(try await client.synchronise().conflicts == 1)
        }
    }

    @Test("online, a conflict is returned with the resource") func conflictOnline() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "{\"n\":1}")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            bench.backend.set("/a", "{\"n\":3}")
            let updated = try await client.update("/a", body: bytes("{\"n\":2}"))
            #expect(updated?.hasConflict == true && updated?.body == bytes("{\"n\":2}"))
        }
    }

    // MARK: Refusals

    @Test(
        "an offline edit that the service refuses is kept with the reason, others continue, and a retry has a new key")
    func commitError() async throws {
        try await Bench.with { bench in
            let client = try bench.start()
            client.networkChanged(isAvailable: false)
            _ = try await client.update("/a", body: bytes("1"))
            _ = try await client.update("/b", body: bytes("2"))
            _ = try await client.update("/a", body: bytes("3"))
            client.networkChanged(isAvailable: true)
            bench.backend.refuse("PUT", 400)
            let summary = try await client.synchronise()
            #expect(summary.refused == 1 && summary.applied == 1 && summary.left == 0)
            let offline = try await client.loadOfflineResources()
            #expect(offline.map(\.uri) == ["/a"] && offline[0].resource?.hasOfflineCommitError == true)
            #expect(offline[0].edits.map(\.status) == [400, nil] && offline[0].edits[0].message == "no")
            #expect(bench.backend.body("/a") == nil)
            #expect(try await client.retryOfflineUpdates("/a"))
            #expect(try await client.synchronise().applied == 2)
            let keys = bench.backend.drainRequests().filter { $0.uri == "/a" }.compactMap(\.key)
            #expect(Set(keys).count == 3)
            #expect(bench.backend.body("/a") == "3")
        }
    }

    @Test("a corrected edit takes the place of a refused one") func correction() async throws {
        try await Bench.with { bench in
            let client = try bench.start()
            client.networkChanged(isAvailable: false)
            let created = try #require(try await client.create(in: "/a", body: bytes("{\"bad\":1}")))
            let below = try await client.create(in: created.uri + "/notes", body: bytes("{}"))
            client.networkChanged(isAvailable: true)
            bench.backend.refuse("POST", 422)
            #expect(try await client.synchronise().refused == 1)
            // An edit below a place that the service has not named yet waits.
            #expect(bench.backend.drainRequests().count == 1)
            _ = try await client.update(created.uri, body: bytes("{\"good\":1}"))
            _ = try await client.synchronise()
            #expect(bench.backend.body("/a/101") == "{\"good\":1}")
            #expect(bench.backend.body("/a/101/notes/102") == "{}")
            #expect(try await client.fetchObject(below?.uri ?? "")?.uri == "/a/101/notes/102")
        }
    }

    @Test("online, a refused edit is an error, and nothing is stored") func refusedOnline() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "1")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            bench.backend.refuse("PUT", 403)
            await #expect { try await client.update("/a", body: bytes("2")) } throws: { error in
                (error as? ResourceError)?.status == 403
            }
            #expect(try await client.loadOfflineResources().isEmpty)
            #expect(try await client.fetchObject("/a")?.body == bytes("1"))
            #expect(bench.told.drain().isEmpty)
        }
    }

    @Test("edits wait for a sign-in") func signIn() async throws {
        try await Bench.with { bench in
            let client = try bench.start()
            bench.backend.refuse("PUT", 401)
            #expect(try await client.update("/a", body: bytes("1"))?.hasOfflineUpdates == true)
            bench.backend.refuse("PUT", 401)
            await #expect { try await client.synchronise() } throws: { Self.code($0) == .signInNeeded }
            #expect(try await client.synchronise().applied == 1)
        }
    }

    @Test(
        "an invalid edit is refused before anything is stored",
        arguments: [("/a?x=1", "{}", "application/json"), ("/a", "{", "application/json"), ("/a", "1", "text/pl\nain")])
    func badEdits(_ uri: String, _ body: String, _ type: String) async throws {
        try await Bench.with { bench in
            let client = try bench.start()
            await #expect {
                try await client.update(uri, body: bytes(body), contentType: type)
            } throws: { Self.code($0) == .invalidArgument }
            #expect(try await client.loadOfflineResources().isEmpty)
        }
    }

    // MARK: Working offline

    @Test("offline mode keeps all edits on the device while there is a network, and its end sends all")
    func offlineMode() async throws {
        try await Bench.with { bench in
            bench.backend.set("/a", "1")
            let client = try bench.start()
            _ = try await client.fetchObject("/a")
            #expect(client.setOfflineMode(true))
            #expect(client.status == .offlineTest)
            _ = bench.backend.drainRequests()
            _ = try await client.update("/a", body: bytes("2"))
            #expect(try await client.fetchObject("/a")?.body == bytes("2"))
            #expect(try await client.synchronise().left == 1)
            #expect(bench.backend.drainRequests().isEmpty)
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await client.run() }
                var calls = bench.told.coming.makeAsyncIterator()
                client.setOfflineMode(false)
                #expect(await calls.next() == .changed("/a", "2"))
                #expect(await calls.next() == .synchronized("/a", "2"))
                group.cancelAll()
                try await group.waitForAll()
            }
            #expect(client.status == .online)
            client.networkChanged(isAvailable: false)
            #expect(!client.setOfflineMode(true))
            #expect(client.status == .offline)
        }
    }

    @Test("edits are discarded one by one or all, and the server's copies stay") func discarding() async throws {
        try await Bench.with { bench in
            for number in 1...3 { bench.backend.set("/a/\(number)", "\(number)") }
            let client = try bench.start()
            for number in 1...3 { _ = try await client.fetchObject("/a/\(number)") }
            client.networkChanged(isAvailable: false)
            for number in 1...3 { _ = try await client.update("/a/\(number)", body: bytes("0")) }
            let created = try #require(try await client.create(in: "/a", body: bytes("9")))
            _ = try await client.create(in: created.uri + "/b", body: bytes("8"))
            #expect(try await client.discardOfflineUpdates("/a/1"))
            #expect(try await client.discardOfflineUpdates("/a/1") == false)
            #expect(try await client.fetchObject("/a/1")?.body == bytes("1"))
            #expect(
                try await client.reloadResource("/a/2", discardOfflineUpdates: true, reloadFromService: false)?.body
                    == bytes("2"))
            #expect(
                try await client.reloadResource("/a/3", discardOfflineUpdates: false, reloadFromService: true) == nil)
            #expect(try await client.fetchObject("/a/3")?.body == bytes("0"))
            #expect(try await client.discardOfflineUpdates(created.uri))
            #expect(try await client.loadOfflineResources().map(\.uri) == ["/a/3"])
            #expect(try await client.fetchObject(created.uri) == nil)
            try await client.discardOfflineUpdates()
            #expect(try await client.loadOfflineResources().isEmpty)
            #expect(try await client.fetchObject("/a/3")?.body == bytes("3"))
            client.networkChanged(isAvailable: true)
            bench.backend.set("/a/3", "33")
            #expect(
                try await client.reloadResource("/a/3", discardOfflineUpdates: false, reloadFromService: true)?.body
                    == bytes("33"))
        }
    }

    @Test("concurrent edits of many resources each arrive once, in order per resource") func concurrent() async throws {
        try await Bench.with { bench in
            let client = try bench.start()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for writer in 0..<8 {
                    group.addTask {
                        for value in 1...10 {
                            if value == 5 { bench.transport.network = .losesAnswers }
                            if value == 7 { bench.transport.network = .works }
                            _ = try await client.update(
                                "/a/\(writer)", body: bytes("\(value)"), policy: self.clientWins)
                        }
                    }
                }
                try await group.waitForAll()
            }
            bench.transport.network = .works
            bench.pass(4_000)
            _ = try await client.synchronise()
            #expect(try await client.loadOfflineResources().isEmpty)
            let asked = bench.backend.drainRequests()
            for writer in 0..<8 {
                var seen: [String] = []
                for request in asked where request.uri == "/a/\(writer)" {
                    if request.key.map({ !seen.contains($0) }) ?? false { seen.append(request.key ?? "") }
                }
                let values = seen.compactMap { key in asked.first { $0.key == key }?.body }.compactMap(Int.init)
                #expect(values == values.sorted() && values.last == 10, "writer \(writer): \(values)")
                #expect(bench.backend.body("/a/\(writer)") == "10")
            }
        }
    }
}
