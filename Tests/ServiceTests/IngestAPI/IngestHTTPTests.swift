import Foundation
import NIOHTTP1
import SyncModel
import Testing

@testable import BackendCalls
@testable import IngestAPI

@Suite("Ingest: HTTP")
struct IngestHTTPTests {
    private func head(
        _ method: HTTPMethod = .POST, _ path: String = "/webapi/sync/single?instanceId=w_app",
        _ headers: HTTPHeaders = ["Content-Type": "application/json", "Content-Length": "2"]
    ) -> HTTPRequestHead {
        HTTPRequestHead(version: .http1_1, method: method, uri: path, headers: headers)
    }

    private func refusal(_ head: HTTPRequestHead) -> HTTPAnswer? {
        do throws(EarlyRefusal) {
            _ = try RequestRules.call(of: head)
            return nil
        } catch {
            return error.answer
        }
    }

    @Test("both calls are found by their path, with any query")
    func scopes() throws {
        #expect(try RequestRules.call(of: head()) == .push(.single))
        #expect(try RequestRules.call(of: head(.POST, "/webapi/sync/global?x=/y")) == .push(.global))
    }

    @Test("a head that cannot be served has its status and closes the connection")
    func statuses() {
        let long = "/webapi/sync/single?instanceId=" + String(repeating: "a", count: 8_192)
        let cases: [(HTTPRequestHead, UInt)] = [
            (head(.POST, "/"), 404), (head(.POST, "/webapi/sync/single/"), 404), (head(.GET, "/x"), 404),
            (head(.GET), 405), (head(.PUT), 405), (head(.POST, long), 414),
            (head(.POST, "/webapi/sync/single", ["Content-Length": "2"]), 415),
            (head(.POST, "/webapi/sync/single", ["Content-Type": "text/plain", "Content-Length": "2"]), 415),
            (
                head(
                    .POST, "/webapi/sync/single",
                    ["Content-Type": "application/json; charset=gbk", "Content-Length": "2"]),
                415
            ),
            (head(.POST, "/webapi/sync/single", ["Content-Type": "application/json"]), 411),
            (head(.POST, "/webapi/sync/single", ["Content-Type": "application/json", "Content-Length": "65537"]), 413),
        ]
        for (head, status) in cases {
            let answer = refusal(head)
            #expect(answer?.status.code == status && answer?.closesConnection == true, "\(head)")
        }
        #expect(refusal(head(.GET))?.allow == "POST")
    }

    @Test("SEC4, SEC8: Content-Encoding is accepted only where it is no compression")
    func encodings() {
        func status(_ encoding: String) -> UInt? {
            refusal(
                head(
                    .POST, "/webapi/sync/single",
                    ["Content-Type": "application/json", "Content-Length": "65536", "Content-Encoding": encoding]))?
                .status
                .code
        }
        for encoding in ["UTF-8", "utf-8", "identity", "Identity"] { #expect(status(encoding) == nil) }
        for encoding in ["gzip", "deflate", "br", "UTF-8, gzip", "utf8"] { #expect(status(encoding) == 415) }
    }

    @Test("Content-Type may name the charset in any spelling")
    func contentTypes() {
        for type in ["application/json;charset=UTF-8", "Application/JSON; charset=\"utf-8\"", "application/json"] {
            #expect(refusal(head(.POST, "/webapi/sync/single", ["Content-Type": type, "Content-Length": "2"])) == nil)
        }
    }

    @Test("an absolute target names the path after its host")
    func absoluteTargets() {
        for (uri, target) in [
            ("/x?y=http://h/", "/x?y=http://h/"), ("http://h:1/webapi/x?y=/z", "/webapi/x?y=/z"), ("http://h", "/"),
            ("http://h?y", "/?y"), ("*", "*"), ("h:1", "h:1"),
        ] {
            #expect(head(.GET, uri).target == target)
        }
    }

    @Test("a field in several lines counts as one with all of them, so that no line is overlooked")
    func repeatedFields() {
        var twice = head()
        twice.headers.add(name: "content-type", value: "text/plain")
        #expect(refusal(twice)?.status.code == 415)
        #expect(twice.value(of: "CONTENT-TYPE") == "application/json, text/plain")
        #expect(twice.value(of: "X-MSS-Key") == nil)
    }

    @Test("request names are 16 digits, and each is another")
    func names() {
        let names = (0..<10_000).map { _ in RequestName.make() }
        #expect(Set(names).count == names.count)
        #expect(names.allSatisfy { $0.utf8.count == 16 && $0.allSatisfy { $0.isHexDigit && !$0.isUppercase } })
    }

    @Test("instanceId is decoded, and absent when it is given twice or wrongly encoded")
    func instanceIDs() {
        func found(_ query: String) -> String? {
            RequestQuery(head(.POST, "/webapi/sync/single" + query))["instanceId"]
        }
        #expect(found("?a=b&instanceId=w%5Fapp") == "w_app")
        #expect(found("?instanceId=") == "")
        for query in [
            "", "?", "?instanceid=a", "?instanceId=a&instanceId=a", "?instanceId=%zz", "?instanceId=%f",
            "?instanceId=%ff",
        ] {
            #expect(found(query) == nil, "\(query)")
        }
    }

    @Test("only the value true makes a dry run: a mistake does not become a push")
    func dryRun() throws {
        func isDryRun(_ query: String) throws(PushRefusal) -> Bool {
            try RequestQuery(head(.POST, "/webapi/sync/single?instanceId=a\(query)")).isDryRun
        }
        #expect(try isDryRun("") == false)
        #expect(try isDryRun("&dryRun=false") == false)
        #expect(try isDryRun("&dryRun=true") == true)
        for query in ["&dryRun=", "&dryRun", "&dryRun=1", "&dryRun=TRUE", "&dryRun=true&dryRun=true", "&dryRun=%"] {
            #expect(throws: PushRefusal.self, "\(query)") { try isDryRun(query) }
        }
    }

    @Test("H8: the description has every path with its method, every code and every state, and is served")
    func description() async throws {
        let data = Data(PackageResources.openapi_json)
        let document = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        let paths = try #require(document["paths"] as? [String: [String: Any]])
        let calls = paths.mapValues { $0.keys.filter { ["get", "post", "put", "delete"].contains($0) } }
        for (path, methods) in calls {
            let call = try #require(APICall(path: path[...]), "\(path)")
            #expect(methods == [call.method.rawValue.lowercased()])
        }
        #expect(calls.count == 7)
        let schemas = try #require((document["components"] as? [String: Any])?["schemas"] as? [String: [String: Any]])
        let enums = schemas.values.compactMap { $0["enum"] as? [String] }.map(Set.init)
        #expect(enums.contains(Set(ResultCode.allCases.map(\.rawValue))))
        #expect(enums.contains(Set(DeliveryState.allCases.map(\.code))))
        let sentences = String(decoding: data, as: UTF8.self)
        for state in DeliveryState.allCases { #expect(sentences.contains(state.sentence), "\(state)") }
        try await IngestServerFixture.serve { port in
            let request = "GET /openapi.json HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
            let answer = try #require(try await IngestServerFixture.exchange(port, request).first)
            #expect(answer.status == 200 && answer.body == String(decoding: data, as: UTF8.self))
            #expect(answer.fields["x-request-id"]?.count == 16)
        }
    }

    @Test("H1, H8: the description has each code's sentence, statuses and examples")
    func describedCodes() throws {
        let data = Data(PackageResources.openapi_json)
        let document = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        let components = try #require(document["components"] as? [String: [String: [String: Any]]])
        let schemas = try #require(components["schemas"])
        let sentences = try #require(schemas["ResultCode"]?["description"] as? String)
        for code in ResultCode.allCases {
            let status = code.isAttempted ? "" : " (\(code.status))"
            #expect(sentences.contains("- `\(code.rawValue)`\(status): \(code.sentence)"), "\(code)")
        }
        // The response of each status has only the codes of that status.
        var described: Set<ResultCode> = []
        let paths = try #require(document["paths"] as? [String: [String: [String: Any]]])
        for operation in paths.values.flatMap(\.values) {
            let responses = try #require(operation["responses"] as? [String: [String: Any]])
            for (status, response) in responses where status != "200" {
                let name = try #require((response["$ref"] as? String)?.split(separator: "/").last.map(String.init))
                let response = try #require(components["responses"]?[name])
                let content = try #require(response["content"] as? [String: [String: [String: String]]])
                let schema = try #require(content["application/json"]?["schema"]?["$ref"]?.split(separator: "/").last)
                let parts = try #require(schemas[String(schema)]?["allOf"] as? [[String: Any]])
                let members = try #require(parts.compactMap { $0["properties"] as? [String: [String: Any]] }.first)
                let code = try #require((members["msg"]?["const"] as? String).flatMap { ResultCode(rawValue: $0) })
                #expect(String(code.status) == status && members["retryable"]?["const"] as? Bool == code.isRetryable)
                described.insert(code)
            }
        }
        #expect(described == Set(ResultCode.allCases.filter { !$0.isAttempted }))
        var examples = 0
        for answer in Self.answers(in: document) {
            examples += 1
            let code = try #require((answer["msg"] as? String).flatMap { ResultCode(rawValue: $0) })
            let items = answer["results"] as? [[String: Any]] ?? []
            let isRetryable = code.isRetryable || items.contains { $0["retryable"] as? Bool == true }
            #expect(answer["success"] as? Bool == code.isSuccess && answer["retryable"] as? Bool == isRetryable)
            #expect((answer["attempted"] as? Bool == false) == !code.isAttempted, "\(answer)")
        }
        #expect(examples > 15)
    }

    /// All answers in the examples, and all their items.
    private static func answers(in value: Any) -> [[String: Any]] {
        if let list = value as? [Any] { return list.flatMap(answers) }
        guard let object = value as? [String: Any] else { return [] }
        return (object["msg"] is String ? [object] : []) + object.values.flatMap(answers)
    }

    @Test("a served connection answers, keeps alive, and names each request")
    func connection() async throws {
        try await IngestServerFixture.serve { port in
            let encoded = IngestSmugglingCase.push("Content-Encoding: UTF-8\r\n")
            let answers = try await IngestServerFixture.exchange(
                port, encoded + IngestSmugglingCase.push("Connection: close\r\n"))
            #expect(answers.map(\.status) == [200, 200])
            #expect(answers.allSatisfy { $0.body.contains(#""msg":"SUCCESS","retryable":false,"oplogId":7"#) })
            #expect(Set(answers.compactMap { $0.fields["x-request-id"] }).count == 2)
        }
    }
}
