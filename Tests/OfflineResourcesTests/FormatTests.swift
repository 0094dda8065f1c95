import Foundation
import Testing

@testable import OfflineResources

@Suite("URIs, collections and pushes in their text forms") struct FormatTests {
    @Test("the leading slash is optional, a trailing one is removed, queries stay") func uris() throws {
        #expect(try ResourceURI("incidents/17").description == "/incidents/17")
        #expect(try ResourceURI("/incidents/").description == "/incidents")
        #expect(try ResourceURI("/").description == "/")
        #expect(try ResourceURI("/a?x=1&y=b/c").query == "x=1&y=b/c")
        #expect(try ResourceURI("/a?").description == "/a")
        #expect(try ResourceURI("/a/b").parentPath == "/a")
        #expect(try ResourceURI("/a").parentPath == "/")
        #expect(try ResourceURI("/a").item("x/y ä").description == "/a/x%2Fy%20%C3%A4")
        let listed = try ResourceURI("/a?z=1").listed(
            limit: 10, offset: 20, orderBy: [SortKey("b"), SortKey("c", isDescending: true)])
        #expect(listed.description == "/a?z=1&limit=10&offset=20&orderBy=b,c:desc")
        #expect(try ResourceURI("/a").local("1").isLocal)
        #expect(try !ResourceURI("/a/1").isLocal)
    }

    @Test(
        "a URI that is no path below the base URL is refused",
        arguments: [
            "http://evil.example/a", "//evil.example/a", "/a//b", "/a/../b", "/./a", "/a b", "/ä", "/a#b", "/a\nb",
            "mailto:/x", String(repeating: "a", count: 2_001), "",
        ])
    func badURIs(_ text: String) {
        // The empty text is the root.
        #expect((try? ResourceURI(text)) == (text.isEmpty ? try? ResourceURI("/") : nil))
    }

    @Test("limits below zero and invalid property names are refused") func badLists() throws {
        let uri = try ResourceURI("/a")
        #expect(throws: ResourceError.self) { try uri.listed(limit: -1, offset: nil, orderBy: []) }
        #expect(throws: ResourceError.self) { try uri.listed(limit: nil, offset: -1, orderBy: []) }
        for name in ["", "a&b=1", "a b", "a,b"] {
            #expect(throws: ResourceError.self) { try uri.listed(limit: nil, offset: nil, orderBy: [SortKey(name)]) }
        }
    }

    private func items(_ json: String, keys: [String] = ["id"]) throws -> [CollectionAnswer.Item] {
        try CollectionAnswer(bytes(json), of: ResourceURI("/a?limit=2"), keys: keys) { try? ResourceURI($0) }.items
    }

    @Test("a collection is a list, or items with their URIs and tags") func collections() throws {
        let plain = try items(#"[{"id":1,"x":2},{"id":"b c"}]"#)
        #expect(plain.map(\.uri.description) == ["/a/1", "/a/b%20c"])
        #expect(plain.map { text($0.body) } == [#"{"id":1,"x":2}"#, #"{"id":"b c"}"#])
        #expect(plain.allSatisfy { $0.etag == nil })
        let full = try items(#"{"items":[{"n":1},{"n":2}],"uris":["/z/1","y"],"etags":["\"1\"","bad"]}"#)
        #expect(full.map(\.uri.description) == ["/z/1", "/y"])
        #expect(full.map(\.etag) == ["\"1\"", nil])
        #expect(try items(#"[{"number":7}]"#, keys: ["id", "number"]).first?.uri.description == "/a/7")
        #expect(try items("[]").isEmpty)
        #expect(try items(#"{"items":[]}"#).isEmpty)
    }

    @Test(
        "an unusable answer for a collection is refused as a whole",
        arguments: [
            "", "{}", "3", #"{"items":3}"#, #"[{"x":1}]"#, #"[{"id":null}]"#, #"[{"id":""}]"#, "[5]",
            #"[{"id":1},{"id":1}]"#, #"{"items":[{"id":1}],"uris":[]}"#, #"{"items":[{"id":1}],"etags":3}"#,
            "[" + (0...10_000).map { #"{"id":\#($0)}"# }.joined(separator: ",") + "]",
        ])
    func badCollections(_ json: String) {
        #expect { try items(json) } throws: { ($0 as? ResourceError)?.code == .answer }
    }

    @Test("a push names resources, one or many") func pushes() throws {
        let push = try ResourcePush(
            bytes(
                #"{"resources":[{"uri":"incidents/17","etag":"\"3\"","action":"refresh","body":{"a":1}},"#
                    + #"{"uri":"/b","action":"invalidate"},{"uri":"/c","action":"delete","body":null}]}"#)
        ) { try? ResourceURI($0) }
        #expect(push.changes.map(\.uri.description) == ["/incidents/17", "/b", "/c"])
        #expect(push.changes.map(\.action) == [.refresh, .invalidate, .delete])
        #expect(push.changes.map(\.etag) == ["\"3\"", nil, nil])
        #expect(push.changes[0].body.map(text) == #"{"a":1}"#)
        #expect(try ResourcePush(bytes(#"{"uri":"/b","action":"delete"}"#)) { try? ResourceURI($0) }.changes.count == 1)
        #expect(try ResourcePush(bytes(#"{"resources":[]}"#)) { try? ResourceURI($0) }.changes.isEmpty)
    }

    @Test(
        "a push with one wrong resource has no effect",
        arguments: [
            "", "[]", "{}", #"{"resources":{}}"#, #"{"resources":[7]}"#, #"{"resources":[{"action":"delete"}]}"#,
            #"{"resources":[{"uri":"/a","action":"drop"}]}"#, #"{"resources":[{"uri":"/a"}]}"#,
            #"{"resources":[{"uri":"/a/../b","action":"delete"}]}"#,
        ])
    func badPushes(_ json: String) {
        #expect {
            try ResourcePush(bytes(json)) { try? ResourceURI($0) }
        } throws: { ($0 as? ResourceError)?.code == .push }
    }

    @Test("the effect of a push on a copy, by action, tags, body and time") func verdicts() throws {
        let asOf = Date(timeIntervalSince1970: 100)
        func verdict(
            _ action: ResourcePush.Action, etag: String?, copy: String?, body: Bool = false, at: Double = 101
        ) throws -> PushVerdict {
            PushVerdict(
                .init(uri: try ResourceURI("/a"), action: action, etag: etag, body: body ? [1] : nil), copyTag: copy,
                asOf: asOf, pushedAt: Date(timeIntervalSince1970: at))
        }
        for action in ResourcePush.Action.allCases where action != .delete {
            #expect(try verdict(action, etag: "\"1\"", copy: "\"1\"", body: true) == .known)
        }
        #expect(try verdict(.delete, etag: "\"1\"", copy: "\"1\"") == .deleted)
        #expect(try verdict(.delete, etag: nil, copy: nil) == .deleted)
        #expect(try verdict(.invalidate, etag: "\"2\"", copy: "\"1\"", body: true) == .marked)
        #expect(try verdict(.invalidate, etag: nil, copy: nil) == .marked)
        #expect(try verdict(.refresh, etag: "\"2\"", copy: "\"1\"") == .fetched)
        #expect(try verdict(.refresh, etag: nil, copy: nil) == .fetched)
        #expect(try verdict(.refresh, etag: "\"2\"", copy: "\"1\"", body: true) == .replaced)
        #expect(try verdict(.refresh, etag: nil, copy: nil, body: true) == .replaced)
        // Without a tag the version would be unknown, and an edit would not be checked.
        #expect(try verdict(.refresh, etag: nil, copy: "\"1\"", body: true) == .fetched)
        // The copy may be newer than the body.
        #expect(try verdict(.refresh, etag: "\"2\"", copy: "\"3\"", body: true, at: 99) == .fetched)
        #expect(try verdict(.refresh, etag: "\"2\"", copy: "\"3\"", body: true, at: 100) == .replaced)
    }

    @Test("references in answers are resolved below the base URL, or ignored") func references() throws {
        let base = try BackendURL("https://Host.example:8443/api/")
        #expect(base.relative("/api/incidents/17") == "/incidents/17")
        #expect(base.relative("https://host.example:8443/api/a?b=c") == "/a?b=c")
        #expect(base.relative("/api") == "/")
        #expect(base.relative("incidents/17") == "/incidents/17")
        #expect(base.relative("/incidents/17") == "/incidents/17")
        #expect(base.relative("https://host.example:8443/other/a") == nil)
        for other in [
            "https://host.example/api/a", "http://host.example:8443/api/a", "https://evil.example:8443/api/a",
            "//evil.example/api/a", "https://host.example:8443@evil.example/api/a", "javascript:alert(1)",
        ] { #expect(base.relative(other) == nil, "\(other)") }
        #expect(try BackendURL("http://h").relative("http://h:80/a") == "/a")
        for bad in ["", "ftp://h/", "https://", "https://u:p@h/", "https://h/?q", "https://h/#f", "h/api"] {
            #expect(throws: ResourceError.self, "\(bad)") { try BackendURL(bad) }
        }
    }
}
