import Foundation
import Logging
import MobileSync
import Synchronization
import Testing

@testable import ClientServices

@Suite("Badges: per user, and reported", .timeLimit(.minutes(1))) struct BadgesTests {
    /// A reporter that can fail, before or after it has recorded the tap.
    private final class PlayedReporter: BadgeTapReporter {
        struct Failure: Error {}
        enum Mood { case takes, failsBefore, failsAfter }

        private let state = Mutex((mood: Mood.takes, taps: [BadgeTap]()))
        var taps: [BadgeTap] { state.withLock { $0.taps } }
        func set(_ mood: Mood) { state.withLock { $0.mood = mood } }

        func report(_ tap: BadgeTap) throws {
            try state.withLock { state in
                if state.mood == .failsBefore { throw Failure() }
                state.taps.append(tap)
                if state.mood == .failsAfter { throw Failure() }
            }
        }
    }

    private let folder: TemporaryFolder
    private let reporter = PlayedReporter()
    private let clock = SetClock()

    init() throws { folder = try TemporaryFolder() }

    private func open() throws -> Badges {
        try Badges(
            store: ServiceStore(folder: folder.url), reporter: reporter, logger: .silent,
            now: { [clock] in clock.date })
    }

    private func path(_ text: String) throws -> BadgePath { try #require(BadgePath(text)) }

    private func json(_ version: Int, _ paths: String...) -> [UInt8] {
        let badges = paths.map { #"{"path":"\#($0)","business":"b","style":"number","number":2,"stamp":1}"# }
        return Array(#"{"version":\#(version),"badges":[\#(badges.joined(separator: ","))]}"#.utf8)
    }

    @Test("each user has an own tree, over restarts; the app's own badges are not stored") func users() throws {
        var badges = try open()
        #expect(try badges.take(json(1, "device"), userID: nil) == .applied)
        try badges.show(userID: "u1")
        #expect(badges.version == nil && badges.count(ofBusiness: "b", mode: .all) == 0)
        #expect(try badges.take(json(1, "a/x", "a/y"), userID: "u1") == .applied)
        #expect(try badges.take(json(1, "b"), userID: "u2") == .applied, "for a user that is not signed in")
        try badges.setLocal([Badge(path: path("a/mine"), mark: .point)])
        #expect(try badges.count(at: path("a"), mode: .all) == 5)
        badges = try open()
        #expect(try badges.mark(at: path("device")) == .number(2))
        try badges.show(userID: "u1")
        #expect(try badges.count(at: path("a"), mode: .all) == 4 && badges.version == 1)
        try badges.show(userID: "u2")
        #expect(try badges.count(at: path("a"), mode: .all) == 0 && badges.mark(at: path("b")) == .number(2))
    }

    @Test("a repeated list is recognised, and an invalid one refused; nothing has changed") func outcomes() throws {
        let badges = try open()
        _ = try badges.take(json(4, "a"), userID: nil)
        #expect(try badges.take(json(4, "b"), userID: nil) == .known)
        for bad in ["nonsense", #"{"version":5,"badges":[{"path":"a","style":"star"}]}"#] {
            guard case .refused = try badges.take(Array(bad.utf8), userID: nil) else {
                Issue.record("\(bad) was accepted")
                continue
            }
        }
        #expect(try badges.mark(at: path("a")) == .number(2) && badges.version == 4)
        #expect(try open().mark(at: path("a")) == .number(2))
    }

    @Test("a tap is reported once, with the cleared badges; the app's own badges and parents are not reported")
    func reported() throws {
        let badges = try open()
        try badges.show(userID: "u1")
        _ = try badges.take(json(1, "a/x", "a/y"), userID: "u1")
        try badges.setLocal([Badge(path: path("mine"), mark: .point)])
        #expect(try !badges.tap(path("a")))
        #expect(try badges.tap(path("mine")))
        #expect(try badges.tap(path("a/x")))
        #expect(try !badges.tap(path("a/x")))
        let tap = try #require(reporter.taps.first)
        #expect(reporter.taps.count == 1 && tap.userID == "u1" && tap.business == "b" && tap.stamp == 1)
        #expect(try tap.path == path("a/x") && tap.at == clock.milliseconds)
        #expect(tap.id.wholeMatch(of: /[0-9a-f]{32}/) != nil)
        try open().reportTaps()
        #expect(reporter.taps.count == 1)
    }

    @Test("all badges are cleared at once, parents too, and each of the server's is reported") func clearAll() throws {
        let badges = try open()
        try badges.show(userID: "u1")
        _ = try badges.take(json(1, "a", "a/x", "a/x/y", "b"), userID: "u1")
        try badges.setLocal([Badge(path: path("mine"), mark: .point)])
        try badges.clearAll()
        #expect(try ["a", "b", "mine"].allSatisfy { try badges.mark(at: path($0)) == .none })
        #expect(Set(reporter.taps.map { "\($0.path)" }) == ["a", "a/x", "a/x/y", "b"] && reporter.taps.count == 4)
        #expect(reporter.taps.map(\.path.widgets.count) == [3, 2, 1, 1], "a badge before those above it")
        try badges.clearAll()
        #expect(reporter.taps.count == 4)
        #expect(try open().count(ofBusiness: "b", mode: .all) == 0)
    }

    @Test("unreported taps stay stored over restarts, in order, and for their user") func kept() throws {
        reporter.set(.failsBefore)
        var badges = try open()
        try badges.show(userID: "u1")
        _ = try badges.take(json(1, "a", "b", "c"), userID: "u1")
        for name in ["c", "a", "b"] {
            try badges.tap(path(name))
            clock.advance(1)
        }
        #expect(reporter.taps.isEmpty)
        badges = try open()
        try badges.show(userID: "u1")
        #expect(try badges.mark(at: path("a")) == .none, "the tapped badge is cleared all the same")
        reporter.set(.takes)
        try badges.show(userID: "u2")
        #expect(reporter.taps.isEmpty, "they are u1's")
        try badges.show(userID: "u1")
        #expect(reporter.taps.map { "\($0.path)" } == ["c", "a", "b"])
    }

    @Test("after a crash between a report and its end, the tap is reported again under the same id")
    func crash() throws {
        reporter.set(.failsAfter)
        let badges = try open()
        _ = try badges.take(json(1, "a"), userID: nil)
        try badges.tap(path("a"))
        reporter.set(.takes)
        try open().reportTaps()
        #expect(reporter.taps.count == 2 && Set(reporter.taps.map(\.id)).count == 1)
    }

    @Test("of unreported taps the newest 1,000 are kept") func bound() throws {
        reporter.set(.failsBefore)
        let badges = try open()
        for round in 1...4 {
            let names = (0..<300).map { "p\($0)" }
            let entries = names.map { #"{"path":"\#($0)","style":"."}"# }.joined(separator: ",")
            _ = try badges.take(Array(#"{"version":\#(round),"badges":[\#(entries)]}"#.utf8), userID: nil)
            for name in names {
                try badges.tap(path(name))
                clock.advance(0.001)
            }
        }
        reporter.set(.takes)
        try badges.reportTaps()
        #expect(reporter.taps.count == 1_000)
        #expect(reporter.taps.first.map { "\($0.path)" } == "p200", "the oldest 200 are dropped")
    }

    @Test("listeners get the paths that can look different") func changes() async throws {
        let badges = try open()
        var changes = badges.changes.makeAsyncIterator()
        _ = try badges.take(json(1, "a/x", "c"), userID: nil)
        #expect(try await changes.next() == Set(["a", "a/x", "c"].map(path)))
        _ = try badges.take(json(2, "a/x", "c"), userID: nil)
        try badges.tap(path("a/x"))
        #expect(try await changes.next() == Set(["a", "a/x"].map(path)))
        try badges.show(userID: "u1")
        #expect(try await changes.next() == Set([path("c")]))
    }

    @Test("lists and taps from concurrent tasks lose nothing") func concurrent() async throws {
        let badges = try open()
        _ = try badges.take(json(1, "p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7"), userID: nil)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask { _ = try badges.tap(try #require(BadgePath("p\(number)"))) }
                group.addTask {
                    let change = #"{"path":"q\#(number)","style":"."}"#
                    _ = try badges.take(Array(#"{"version":\#(number + 2),"changes":[\#(change)]}"#.utf8), userID: nil)
                }
            }
            try await group.waitForAll()
        }
        #expect(Set(reporter.taps.map(\.path)).count == 8)
        #expect(try badges.mark(at: path("q7")) == .point, "the newest list was applied")
        #expect(try badges.mark(at: path("p0")) == .none && open().mark(at: path("q7")) == .point)
    }

    @Test("an invalid user id is refused") func badUser() throws {
        let badges = try open()
        for userID in ["", "a\0b", String(repeating: "u", count: 101)] {
            #expect(throws: ClientServiceError.self) { try badges.show(userID: userID) }
        }
    }
}
