import Foundation
import Testing

@testable import ClientServices

@Suite("Badges: the tree") struct BadgeTreeTests {
    private func path(_ text: String) throws -> BadgePath { try #require(BadgePath(text)) }

    private func list(_ json: String) throws -> BadgeList { try BadgeList(Array(json.utf8)) }

    private func tree(_ badges: String) throws -> BadgeTree {
        var tree = BadgeTree()
        _ = try tree.apply(list(#"{"version":1,"badges":[\#(badges)]}"#))
        return tree
    }

    private static let sample = """
        {"path":"home/chat/17","business":"chat","style":"number","number":3},
        {"path":"home/chat/18","business":"chat","style":"."},
        {"path":"home/shop","business":"shop","style":"new"},
        {"path":"me/gift","business":"shop","style":"text","text":"-10%"},
        {"path":"me/card","business":"shop","style":"none"},
        {"path":"me/mail","business":"chat","style":"number","number":0},
        {"path":"archive/chat","business":"chat","style":"number","number":4}
        """

    @Test("parents sum their children in each mode") func sums() throws {
        let tree = try tree(Self.sample)
        #expect(BadgeCountMode.allCases.map { mode in tree.count(at: BadgePath("home")!, mode: mode) } == [1, 1, 3, 5])
        #expect(BadgeCountMode.allCases.map { mode in tree.count(at: BadgePath("me")!, mode: mode) } == [0, 0, 0, 1])
        #expect(try tree.count(at: path("nothing/here"), mode: .all) == 0)
    }

    @Test("a widget counts wherever its id is on a path, a business on any path")
    func byWidgetAndBusiness() throws {
        let tree = try tree(Self.sample)
        #expect(tree.count(ofWidget: "chat", mode: .number) == 7 && tree.count(ofWidget: "chat", mode: .all) == 8)
        #expect(tree.count(ofWidget: "17", mode: .number) == 3 && tree.count(ofWidget: "cha", mode: .all) == 0)
        #expect(tree.count(ofBusiness: "chat", mode: .all) == 8 && tree.count(ofBusiness: "shop", mode: .all) == 2)
    }

    @Test("a leaf shows its own mark, a parent the sum, else new, else a point") func marks() throws {
        let tree = try tree(Self.sample)
        for (text, mark) in [
            ("home/chat/17", BadgeMark.number(3)), ("home/chat/18", .point), ("home/chat", .number(3)),
            ("home", .number(3)), ("home/shop", .new), ("me/gift", .text("-10%")), ("me", .point), ("me/card", .none),
            ("me/mail", .none), ("else", .none),
        ] { #expect(try tree.mark(at: path(text)) == mark, "\(text)") }
        #expect(try self.tree(#"{"path":"a/b","style":"new"},{"path":"a/c","style":"."}"#).mark(at: path("a")) == .new)
        #expect(
            try self.tree(#"{"path":"a","style":"text","text":"x"},{"path":"a/c","style":"."}"#).mark(at: path("a"))
                == .point, "its own text is not all there is")
    }

    @Test("a path is not above another whose widget id only begins with the same text") func prefixes() throws {
        let tree = try tree(#"{"path":"ab/c","style":"."}"#)
        #expect(try tree.count(at: path("a"), mode: .all) == 0 && tree.count(at: path("ab"), mode: .all) == 1)
    }

    @Test("a tap clears a leaf and its share in all parents, and no parent") func taps() throws {
        var tree = try tree(Self.sample)
        let parent = try tree.tap(path("home/chat"))
        #expect(!parent.isCleared && parent.reported == nil)
        let leaf = try tree.tap(path("home/chat/17"))
        #expect(leaf.isCleared && leaf.reported?.business == "chat")
        #expect(try tree.count(at: path("home"), mode: .number) == 0 && tree.mark(at: path("home")) == .new)
        let again = try tree.tap(path("home/chat/17"))
        #expect(!again.isCleared, "there is nothing left to clear")
        for invisible in ["me/card", "me/mail", "else"] {
            let nothing = try tree.tap(path(invisible))
            #expect(!nothing.isCleared && nothing.reported == nil, "\(invisible)")
        }
    }

    @Test("a badge on a parent is cleared by a tap when nothing is shown below it") func parentWithBadge() throws {
        var tree = try tree(
            #"{"path":"a","style":"."},{"path":"a/b","style":"."},{"path":"a/c","style":"none"}"#)
        #expect(try tree.tap(path("a")).isCleared == false)
        #expect(try tree.tap(path("a/b")).isCleared)
        #expect(try tree.tap(path("a")).isCleared && tree.count(at: path("a"), mode: .all) == 0)
    }

    @Test("a tapped badge stays hidden until its stamp is newer; without a stamp each list shows it again")
    func stamps() throws {
        let badge = #"{"path":"a","style":".","stamp":7}"#
        var tree = try tree(badge)
        _ = try tree.tap(path("a"))
        _ = try tree.apply(list(#"{"version":2,"badges":[\#(badge)]}"#))
        #expect(try tree.mark(at: path("a")) == .none, "the server did not know of the tap yet")
        _ = try tree.apply(list(#"{"version":3,"changes":[{"path":"a","style":".","stamp":8}]}"#))
        #expect(try tree.mark(at: path("a")) == .point)
        _ = try tree.tap(path("a"))
        _ = try tree.apply(list(#"{"version":4,"changes":[{"path":"a","style":".","stamp":8}]}"#))
        #expect(try tree.mark(at: path("a")) == .none)
        _ = try tree.apply(list(#"{"version":5,"badges":[]}"#))
        #expect(tree.cleared.isEmpty, "the server has the tap")
        _ = try tree.apply(list(#"{"version":6,"badges":[{"path":"b","style":"."}]}"#))
        _ = try tree.tap(path("b"))
        _ = try tree.apply(list(#"{"version":7,"badges":[{"path":"b","style":"."}]}"#))
        #expect(try tree.mark(at: path("b")) == .point)
    }

    @Test("an incremental list changes and removes the badges that it names; an older list changes nothing")
    func incremental() throws {
        var tree = try tree(Self.sample)
        let news = try list(
            #"{"version":2,"changes":[{"path":"home/chat/17","style":"number","number":9}],"removed":["home/shop"]}"#)
        #expect(try tree.apply(news))
        #expect(try tree.count(at: path("home"), mode: .all) == 10)
        let before = tree
        #expect(try !tree.apply(news))
        #expect(try !tree.apply(list(#"{"version":1,"badges":[]}"#)))
        #expect(tree == before)
        #expect(try tree.apply(list(#"{"version":3,"removed":["home/chat/17"]}"#)))
        #expect(try tree.count(at: path("home"), mode: .all) == 1)
    }

    @Test("the app's own badges count with the server's, survive its lists, and are not reported") func local() throws {
        var tree = try tree(#"{"path":"a/b","style":"number","number":2}"#)
        tree.setLocal([
            try Badge(path: path("a/b"), mark: .number(3)), try Badge(path: path("a/mine"), mark: .new),
        ])
        #expect(try tree.mark(at: path("a")) == .number(5))
        _ = try tree.apply(list(#"{"version":2,"badges":[]}"#))
        #expect(try tree.mark(at: path("a")) == .number(3))
        let mine = try tree.tap(path("a/mine"))
        #expect(mine.isCleared && mine.reported == nil)
        tree.setLocal([])
        #expect(try tree.mark(at: path("a")) == .none)
    }

    @Test("one tap clears the server's badge and the app's at the same path") func bothLayers() throws {
        var tree = try tree(#"{"path":"a","style":"number","number":2}"#)
        tree.setLocal([try Badge(path: path("a"), mark: .number(3))])
        let tap = try tree.tap(path("a"))
        #expect(tap.isCleared && tap.reported?.mark == .number(2))
        #expect(try tree.mark(at: path("a")) == .none)
    }

    @Test(
        "an invalid list is refused",
        arguments: [
            "", "7", #"{"badges":[]}"#, #"{"version":0,"badges":[]}"#, #"{"version":1}"#,
            #"{"version":1,"badges":[],"changes":[]}"#, #"{"version":1,"badges":[],"removed":[]}"#,
            #"{"version":1,"badges":[{"path":"a"}]}"#, #"{"version":1,"badges":[{"path":"","style":"."}]}"#,
            #"{"version":1,"badges":[{"path":"a//b","style":"."}]}"#,
            #"{"version":1,"badges":[{"path":"/a","style":"."}]}"#,
            #"{"version":1,"badges":[{"path":"1/2/3/4/5/6/7/8/9","style":"."}]}"#,
            #"{"version":1,"badges":[{"path":"\#(String(repeating: "w", count: 65))","style":"."}]}"#,
            #"{"version":1,"badges":[{"path":"a","style":"star"}]}"#,
            #"{"version":1,"badges":[{"path":"a","style":"number"}]}"#,
            #"{"version":1,"badges":[{"path":"a","style":"number","number":-1}]}"#,
            #"{"version":1,"badges":[{"path":"a","style":"number","number":1000001}]}"#,
            #"{"version":1,"badges":[{"path":"a","style":"text"}]}"#,
            #"{"version":1,"badges":[{"path":"a","style":"text","text":"\#(String(repeating: "t", count: 65))"}]}"#,
            #"{"version":1,"badges":[{"path":"a","style":"."},{"path":"a","style":"new"}]}"#,
            #"{"version":1,"changes":[],"removed":["a/"]}"#,
        ]) func refused(json: String)
    {
        #expect(throws: PushFault.self) { try BadgeList(Array(json.utf8)) }
    }

    @Test("a list that would make over 500 badges is refused, and nothing has changed") func tooMany() throws {
        let badges = (0..<500).map { #"{"path":"p\#($0)","style":"."}"# }.joined(separator: ",")
        var tree = try tree(badges)
        let before = tree
        #expect(throws: PushFault.self) { try tree.apply(list(#"{"version":2,"changes":[{"path":"x","style":"."}]}"#)) }
        #expect(tree == before)
        #expect(try tree.apply(list(#"{"version":2,"changes":[{"path":"x","style":"."}],"removed":["p0"]}"#)))
    }

    @Test("without full lists from the server, the 500 newest stamps of tapped badges are kept")
    func manyTaps() throws {
        var tree = BadgeTree()
        for number in 1...520 {
            let badge = #"{"path":"p\#(number)","style":".","stamp":\#(number)}"#
            #expect(try tree.apply(list(#"{"version":\#(number),"changes":[\#(badge)]}"#)))
            _ = try tree.tap(path("p\(number)"))
        }
        #expect(tree.cleared.count == 500 && tree.cleared.values.min() == 21)
    }

    @Test("a tree read from its JSON has no badges of the app's own") func coding() throws {
        var tree = try tree(Self.sample + #",{"path":"t","style":".","stamp":5}"#)
        _ = try tree.tap(path("t"))
        let decoded = try JSONDecoder().decode(BadgeTree.self, from: JSONEncoder().encode(tree))
        #expect(decoded == tree)
        tree.setLocal([try Badge(path: path("l"), mark: .new)])
        #expect(try JSONDecoder().decode(BadgeTree.self, from: JSONEncoder().encode(tree)) == decoded)
    }

    @Test("the changed paths are those of changed badges and all above them") func differing() throws {
        let before = try tree(Self.sample)
        var after = before
        _ = try after.tap(path("home/chat/18"))
        #expect(try after.paths(differingFrom: before) == Set(["home", "home/chat", "home/chat/18"].map(path)))
        #expect(before.paths(differingFrom: before).isEmpty)
    }

    @Test("random lists, taps and local badges agree with a naive tree", arguments: UInt64(1)...40)
    func random(seed: UInt64) throws {
        var numbers = SeededNumbers(seed: seed)
        var (tree, naive, version) = (BadgeTree(), NaiveBadges(), 0)
        let words = ["a", "b", "ab"]
        func somePath() -> String {
            (0...numbers.below(3)).map { _ in words[numbers.below(words.count)] }.joined(separator: "/")
        }
        func someBadge() -> NaiveBadges.Entry {
            NaiveBadges.Entry(
                style: [".", "number", "new", "text", "none"][numbers.below(5)], number: numbers.below(3),
                business: words[numbers.below(2)], stamp: numbers.below(3) == 0 ? nil : numbers.below(6))
        }
        for step in 0..<120 {
            var some: [String: NaiveBadges.Entry] = [:]
            for _ in 0..<numbers.below(4) { some[somePath()] = someBadge() }
            switch numbers.below(6) {
            case 0:
                version += numbers.below(3)
                let isNew = try tree.apply(list(NaiveBadges.json(version, "badges", some)))
                #expect(isNew == naive.applyFull(version, some))
            case 1, 2:
                version += numbers.below(3)
                let removed = (0..<numbers.below(3)).map { _ in somePath() }
                let isNew = try tree.apply(list(NaiveBadges.json(version, "changes", some, removed: removed)))
                #expect(isNew == naive.applyChanges(version, some, removed))
            case 3:
                tree.setLocal(
                    try some.map { path, entry in
                        try Badge(path: self.path(path), business: entry.business, mark: entry.mark)
                    })
                naive.local = some
            default:
                let path = somePath()
                let (isCleared, reported) = try tree.tap(self.path(path))
                let expected = naive.tap(path)
                #expect(isCleared == expected.isCleared && (reported != nil) == expected.isReported, "step \(step)")
            }
            for path in ["a", "b", "ab", "a/b", "b/ab", "a/b/ab", "ab/ab"] {
                for mode in BadgeCountMode.allCases {
                    #expect(try tree.count(at: self.path(path), mode: mode) == naive.count(at: path, mode))
                }
                #expect(try tree.mark(at: self.path(path)) == naive.mark(at: path), "\(path), step \(step)")
            }
            for word in words {
                #expect(tree.count(ofWidget: word, mode: .all) == naive.count(ofWidget: word))
                #expect(tree.count(ofBusiness: word, mode: .number) == naive.numbers(ofBusiness: word))
            }
        }
    }
}
