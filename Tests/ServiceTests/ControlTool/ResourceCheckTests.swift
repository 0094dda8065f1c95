import Foundation
import Testing

@testable import ControlTool

@Suite("Checks of a backend for offline resources") struct ResourceCheckTests {
    /// A backend whose faults a test chooses.
    private actor Backend {
        let faults: Set<String>
        private(set) var items: [String: (body: [UInt8], version: Int)] = ["/a/1": ([UInt8]("{}".utf8), 1)]
        private var keys: [String: String] = [:]
        private var last = 1

        init(faults: Set<String>) { self.faults = faults }

        private func tag(_ path: String) -> String? {
            if faults.contains("ETag") { return nil }
            if faults.contains("quotes") { return items[path].map { "v\($0.version)" } }
            return items[path].map { "\"v\($0.version)\"" }
        }

        private func answer(_ status: Int, _ path: String, _ headers: [String: String] = [:]) -> ResourceCheck.Response
        {
            var headers = headers
            headers["etag"] = tag(path)
            return ResourceCheck.Response(
                status: status, headers: headers, body: status == 200 ? items[path]?.body ?? [] : [])
        }

        func send(_ request: ResourceCheck.Request) -> ResourceCheck.Response {
            let path = request.url.replacing("http://h", with: "")
            let condition = faults.contains("If-Match") ? nil : request.headers["If-Match"]
            if let condition, condition != "*", condition != tag(path) { return answer(412, path) }
            switch request.method {
            case "GET" where path == "/a":
                return ResourceCheck.Response(
                    status: 200, headers: ["etag": "\"c\""], body: [UInt8]("[]".utf8))
            case "GET":
                if let tag = request.headers["If-None-Match"], tag == self.tag(path), !faults.contains("304") {
                    return answer(304, path)
                }
                return answer(items[path] == nil ? 404 : 200, path)
            case "PUT":
                last += 1
                items[path] = (request.body, last)
                var response = answer(204, path)
                if faults.contains("PUT") { response = ResourceCheck.Response(status: 204, headers: [:], body: []) }
                return response
            case "POST":
                let key = faults.contains("key") ? nil : request.headers["Idempotency-Key"]
                last += 1
                let place = key.flatMap { keys[$0] } ?? "/a/\(last)"
                if let key { keys[key] = place }
                items[place] = items[place] ?? (request.body, last)
                return answer(
                    201, place,
                    faults.contains("Location")
                        ? [:]
                        : [
                            "location": faults.contains("host")
                                ? "http://other\(place)" : place
                        ])
            default:
                items[path] = nil
                return ResourceCheck.Response(status: 204, headers: [:], body: [])
            }
        }
    }

    private func check(_ faults: Set<String>) -> (ResourceCheck, Backend) {
        let backend = Backend(faults: faults)
        return (ResourceCheck { await backend.send($0) }, backend)
    }

    private func problems(_ results: [ResourceCheckResult]) -> [String] {
        results.filter { $0.problem != nil }.map(\.rule)
    }

    @Test("a backend with ETag, If-None-Match, If-Match, Location and Idempotency-Key has no problem, and is unchanged")
    func good() async throws {
        let (check, backend) = check([])
        let results =
            try await check.read("http://h/a/1") + check.edit("http://h/a/1")
            + check.create(in: "http://h/a", [UInt8]("{}".utf8))
        #expect(problems(results).isEmpty && results.count == 12)
        #expect(results[0].line == "ok       GET answers 200 with JSON")
        #expect(await backend.items.keys.sorted() == ["/a/1"])
        #expect(await backend.items["/a/1"]?.body == [UInt8]("{}".utf8))
    }

    @Test(
        "each missing behaviour is named",
        arguments: [
            ("ETag", ["GET has an ETag", "PUT checks If-Match", "POST answers with an ETag"]),
            ("304", ["GET with this ETag as If-None-Match answers 304"]),
            ("If-Match", ["PUT with another ETag as If-Match answers 412"]), ("PUT", ["PUT answers with the new ETag"]),
            ("Location", ["POST answers with a Location on the same host"]),
            ("host", ["POST answers with a Location on the same host"]),
            ("key", ["POST with the same Idempotency-Key creates nothing more"]),
        ])
    func missing(_ fault: String, _ rules: [String]) async throws {
        let (check, backend) = check([fault])
        let results =
            try await check.read("http://h/a/1") + check.edit("http://h/a/1")
            + check.create(in: "http://h/a", [UInt8]("{}".utf8))
        #expect(problems(results) == rules)
        // The check deletes the resources that it created, if the backend named their place.
        let isLeft = ["Location", "host"].contains(fault)
        #expect(await backend.items.count == (isLeft ? 2 : 1))
    }

    @Test("an unquoted entity tag and a missing resource are problems") func unusable() async throws {
        let (unquoted, _) = check(["quotes"])
        #expect(try await problems(unquoted.read("http://h/a/1")) == ["GET has an ETag"])
        let (check, _) = check([])
        let results = try await check.read("http://h/a/9")
        #expect(results.map(\.line).first?.contains("missing  GET answers 200 with JSON: status 404") == true)
    }
}
