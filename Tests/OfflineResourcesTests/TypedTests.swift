import Foundation
import MobileSync
import Testing

@testable import OfflineResources

@Suite("Resources as values of the app's types", .timeLimit(.minutes(2))) struct TypedTests {
    private struct Incident: Codable, Sendable, Hashable {
        enum State: String, Codable { case new, closed }

        var id: Int
        var state: State
        var at: Date?
    }

    @Test("an object and a collection are fetched as values, created and updated from values, offline too")
    func roundTrip() async throws {
        try await Bench.with { bench in
            bench.backend.set("/incidents/1", #"{"id":1,"state":"new","at":"2026-11-27T07:00:00Z","more":true}"#)
            bench.backend.set("/incidents/2", #"{"id":2,"state":"closed"}"#)
            let client = try bench.start()
            var first = try #require(try await client.fetch(Incident.self, "/incidents/1"))
            #expect(first.value.at == Date(timeIntervalSince1970: 1_795_762_800) && !first.resource.isFromCache)
            let all = try await client.fetchAll(Incident.self, in: "/incidents")
            #expect(all?.map(\.value.id) == [1, 2])
            let closed = try await client.fetchAll(
                Incident.self, in: "/incidents", queryFor: [ResourceQuery("state", .equal, .text("closed"))])
            #expect(closed?.map(\.value.id) == [2])
            client.networkChanged(isAvailable: false)
            var incident = first.value
            incident.state = .closed
            _ = try await client.update("/incidents/1", with: incident)
            let created = try #require(
                try await client.create(Incident(id: 3, state: .new), in: "/incidents"))
            first = try #require(try await client.fetch(Incident.self, "/incidents/1"))
            #expect(first.value == incident && first.resource.hasOfflineUpdates)
            #expect(try await client.fetch(Incident.self, created.uri)?.value.id == 3)
            #expect(try await client.fetch(Incident.self, "/incidents/9") == nil)
            client.networkChanged(isAvailable: true)
            _ = try await client.synchronise()
            let stored = bench.backend.body("/incidents/1").flatMap { JSONValue.parse(bytes($0)) }
            #expect(stored?["state"] == .text("closed") && stored?["at"] == .text("2026-11-27T07:00:00Z"))
        }
    }

    @Test(
        "a body of another form is an error with the URI and the member, and without a value of the body",
        arguments: [
            (#"{"state":"new"}"#, "the member id is missing"), (#"{"id":"x","state":"new"}"#, "the member id is not a"),
            (#"{"id":null,"state":"new"}"#, "the member id is null"),
            (#"{"id":1,"state":"secret"}"#, "the member state has no valid value"), ("secret", "it is not valid JSON"),
            ("[]", "it is not a"),
        ])
    func otherForms(_ body: String, _ reason: String) async throws {
        try await Bench.with { bench in
            bench.backend.set("/incidents/1", body)
            let client = try bench.start()
            await #expect {
                try await client.fetch(Incident.self, "/incidents/1")
            } throws: { error in
                guard let error = error as? ResourceError else { return false }
                return error.code == .decoding && error.message.contains("/incidents/1 is not a Incident: \(reason)")
                    && !error.message.contains("secret")
            }
            #expect(try await client.fetchObject("/incidents/1")?.body == bytes(body))
        }
    }

    @Test("a value that JSON does not have is refused before anything is stored") func unencodable() async throws {
        try await Bench.with { bench in
            let client = try bench.start()
            await #expect {
                try await client.update("/a", with: ["n": Double.infinity])
            } throws: { error in
                let error = error as? ResourceError
                return error?.code == .invalidArgument && error?.message.contains(" at n") == true
            }
            #expect(try await client.loadOfflineResources().isEmpty)
        }
    }

    @Test("the app's own coders are used") func coders() async throws {
        try await Bench.with { bench in
            struct Named: Codable, Sendable { var isoDay: String }
            let client = try bench.start { configuration in
                configuration.coding.makeDecoder = {
                    let decoder = JSONDecoder()
                    decoder.keyDecodingStrategy = .convertFromSnakeCase
                    return decoder
                }
            }
            bench.backend.set("/a", #"{"iso_day":"1970-01-01"}"#)
            #expect(try await client.fetch(Named.self, "/a")?.value.isoDay == "1970-01-01")
        }
    }
}

@Suite("Header fields of single requests", .timeLimit(.minutes(2))) struct HeaderTests {
    @Test("a fetch sends them once, an edit with each attempt, after a restart too, and never in a batch")
    func requests() async throws {
        try await Bench.with { bench in
            bench.backend.change { $0.takesBatches = true }
            bench.backend.set("/a", "{}")
            let client = try bench.start()
            _ = try await client.fetchObject("/a", headers: ["X-Trace": "fetch"])
            _ = try await client.fetchCollection("/empty", headers: ["X-Trace": "list"])
            _ = try await client.fetchObject("/a")
            #expect(bench.backend.drainRequests().map(\.trace) == ["fetch", "list", nil])
            client.networkChanged(isAvailable: false)
            _ = try await client.update("/a", body: bytes("1"), headers: ["X-Trace": "one"])
            _ = try await client.update("/a", body: bytes("2"), headers: ["X-Trace": "two"])
            _ = try await client.patch("/b", with: .object([:]), headers: ["X-Trace": "three"])
            _ = try await client.create(in: "/c", body: bytes("{}"), headers: ["X-Trace": "four"])
            try await client.delete("/d", headers: ["X-Trace": "five"])
            let second = try bench.start { $0.batchPath = "/batch" }
            bench.transport.network = .losesAnswers
            _ = try await second.synchronise()
            bench.transport.network = .works
            bench.pass(10)
            _ = try await second.synchronise()
            let traces = bench.backend.drainRequests().filter { $0.method != "GET" }.map(\.trace)
            #expect(traces == ["one", "one", "two", "three", "four", "five"])
        }
    }

    @Test(
        "a field that the library sets, an invalid name or value, and too many bytes are refused",
        arguments: [
            ["If-Match": "*"], ["idempotency-key": "1"], ["Content-Type": "text/plain"], ["X A": "1"], ["": "1"],
            ["X-A": "1\r\nX-B: 2"], ["X-A": "ä"], ["X-A": String(repeating: "x", count: 4_000)],
        ] as [ResourceHeaders])
    func refused(_ headers: ResourceHeaders) async throws {
        try await Bench.with { bench in
            let client = try bench.start()
            for call in [
                { _ = try await client.fetchObject("/a", headers: headers) },
                { _ = try await client.update("/a", body: bytes("1"), headers: headers) },
            ] as [@Sendable () async throws -> Void] {
                await #expect { try await call() } throws: { ($0 as? ResourceError)?.code == .invalidArgument }
            }
            #expect(bench.backend.drainRequests().isEmpty)
            #expect(try await client.loadOfflineResources().isEmpty)
        }
    }
}
