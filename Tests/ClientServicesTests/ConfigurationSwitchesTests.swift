import Foundation
import MobileSync
import Testing

@testable import ClientServices

@Suite("Configuration switches", .timeLimit(.minutes(1))) struct ConfigurationSwitchesTests {
    private let folder: TemporaryFolder
    private let clock = SetClock()

    init() throws { folder = try TemporaryFolder() }

    private func open() throws -> ConfigurationSwitches {
        try ConfigurationSwitches(store: ServiceStore(folder: folder.url), now: { [clock] in clock.date })
    }

    private struct Home: Codable, Equatable {
        let rows: Int
        let tint: String?
    }

    @Test("each type is read by its key, and a missing value or one of another type gives the default")
    func types() throws {
        let switches = try open()
        #expect(switches.text("title", default: "d") == "d" && switches.version == nil && switches.fetchedAt == nil)
        let json = """
            {"version":1,"values":{"title":"Hello","on":true,"rate":0.5,"rows":12,"home":{"rows":3,"tint":null},
            "list":[1,"a",false]}}
            """
        #expect(try switches.take(Array(json.utf8)) == .applied)
        #expect(switches.text("title", default: "") == "Hello")
        #expect(switches.bool("on", default: false))
        #expect(switches.number("rate", default: 0) == 0.5)
        #expect(switches.integer("rows", default: 0) == 12)
        #expect(switches.object("home", default: Home(rows: 0, tint: "")) == Home(rows: 3, tint: nil))
        #expect(switches.value("list") == .array([.integer(1), .text("a"), .boolean(false)]))
        #expect(switches.text("on", default: "d") == "d" && !switches.bool("rows", default: false))
        #expect(switches.integer("rate", default: 7) == 7, "a half is no whole number")
        #expect(switches.object("title", default: Home(rows: 9, tint: nil)).rows == 9)
        #expect(switches.version == 1 && switches.fetchedAt == clock.date)
    }

    @Test("a full set replaces all switches, an incremental one replaces and removes those that it names")
    func fullAndChanges() throws {
        let switches = try open()
        _ = try switches.take(Array(#"{"version":3,"values":{"a":1,"b":2}}"#.utf8))
        #expect(try switches.take(Array(#"{"version":4,"changes":{"b":null,"c":3}}"#.utf8)) == .applied)
        #expect(switches.values == ["a": .integer(1), "c": .integer(3)])
        #expect(try switches.take(Array(#"{"version":9,"values":{"d":4}}"#.utf8)) == .applied)
        #expect(switches.values == ["d": .integer(4)])
    }

    @Test("a push that is not newer is recognised and changes nothing: a repeated or a late one") func known() throws {
        let switches = try open()
        _ = try switches.take(Array(#"{"version":5,"values":{"a":1}}"#.utf8))
        for version in [5, 4, 1] {
            #expect(try switches.take(Array(#"{"version":\#(version),"changes":{"a":2}}"#.utf8)) == .known)
        }
        #expect(switches.values == ["a": .integer(1)])
    }

    @Test("the last valid set survives restarts, with its version and time") func restart() throws {
        _ = try open().take(Array(#"{"version":5,"values":{"a":1,"x":{"y":[null]}}}"#.utf8))
        let fetched = clock.date
        clock.advance(1_000)
        let switches = try open()
        #expect(switches.integer("a", default: 0) == 1 && switches.version == 5 && switches.fetchedAt == fetched)
        #expect(switches.value("x") == .object(["y": .array([.null])]))
        #expect(try switches.take(Array(#"{"version":5,"values":{}}"#.utf8)) == .known)
    }

    @Test(
        "an invalid push is refused, and the last valid set stays, over a restart too",
        arguments: [
            "", "null", "[]", "{", #"{"values":{}}"#, #"{"version":9}"#, #"{"version":"9","values":{}}"#,
            #"{"version":9.5,"values":{}}"#, #"{"version":0,"values":{}}"#, #"{"version":-1,"values":{}}"#,
            #"{"version":9,"values":{"a":null}}"#, #"{"version":9,"values":{"":1}}"#, #"{"version":9,"values":[1]}"#,
            #"{"version":9,"values":{},"changes":{}}"#, #"{"version":99999999999999999999,"values":{}}"#,
            #"{"version":9,"values":{"a":1}} trailing"#,
            #"{"version":9,"values":{"\#(String(repeating: "k", count: 257))":1}}"#,
            #"{"version":9,"values":{"a":"\#(String(repeating: "v", count: 1_000_000))"}}"#,
            #"{"version":9,"values":{"a":\#(String(repeating: "[", count: 100_000))}}"#,
            #"{"version":9,"values":{\#((0...2_000).map { "\"k\($0)\":1" }.joined(separator: ","))}}"#,
        ])
    func refused(json: String) throws {
        let switches = try open()
        _ = try switches.take(Array(#"{"version":5,"values":{"a":1}}"#.utf8))
        guard case .refused(let reason) = try switches.take(Array(json.utf8)) else {
            Issue.record("it was accepted")
            return
        }
        #expect(!reason.isEmpty)
        #expect(switches.values == ["a": .integer(1)] && switches.version == 5)
        #expect(try open().values == ["a": .integer(1)])
    }

    @Test("changes that would make too many switches are refused, although each push is small") func tooMany() throws {
        let switches = try open()
        for page in 0..<4 {
            let members = (0..<500).map { "\"k\(page * 500 + $0)\":1" }.joined(separator: ",")
            #expect(try switches.take(Array("{\"version\":\(page + 1),\"changes\":{\(members)}}".utf8)) == .applied)
        }
        let full = try switches.take(Array(#"{"version":9,"changes":{"one more":1}}"#.utf8))
        guard case .refused = full else {
            Issue.record("\(full)")
            return
        }
        #expect(try switches.take(Array(#"{"version":9,"changes":{"one more":1,"k0":null}}"#.utf8)) == .applied)
        #expect(switches.values.count == 2_000)
    }

    @Test("listeners get each fetch, and the keys whose value has changed") func news() async throws {
        let switches = try open()
        var news = switches.news.makeAsyncIterator()
        _ = try switches.take(Array(#"{"version":1,"values":{"a":1,"b":2}}"#.utf8))
        _ = try switches.take(Array(#"{"version":1,"values":{"a":7}}"#.utf8))
        _ = try switches.take(Array(#"{"version":2,"values":{"a":1,"b":3,"c":4}}"#.utf8))
        _ = try switches.take(Array(#"{"version":3,"changes":{"c":4}}"#.utf8))
        _ = try switches.take(Array(#"{"version":4,"changes":{"a":null}}"#.utf8))
        let expected: [ConfigurationSwitchChange] = [
            .fetched(version: 1), .changed(keys: ["a", "b"]), .fetched(version: 2), .changed(keys: ["b", "c"]),
            .fetched(version: 3), .fetched(version: 4), .changed(keys: ["a"]),
        ]
        for piece in expected { #expect(await news.next() == piece) }
    }

    @Test("after pushes from concurrent tasks the newest set is in force, on the disk as in memory")
    func concurrent() async throws {
        let switches = try open()
        await withTaskGroup(of: Void.self) { group in
            for version in 1...40 {
                group.addTask {
                    _ = try? switches.take(Array(#"{"version":\#(version),"values":{"v":\#(version)}}"#.utf8))
                }
            }
        }
        #expect(switches.version == 40 && switches.integer("v", default: 0) == 40)
        #expect(try open().values == switches.values)
    }
}
