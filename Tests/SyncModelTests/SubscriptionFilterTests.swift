import DeliveryHistory
import SyncModel
import Testing

@Suite("Subscription parameters: filters and declarations")
struct SubscriptionFilterTests {
    private static func rules(
        _ filter: String, _ attributes: String = "region text, price number, urgent boolean",
        _ parameters: String = "region text, max number = 10, urgent boolean"
    ) throws(SubscriptionFault) -> SubscriptionRules {
        try SubscriptionRules(SubscriptionText(filter: filter, attributes: attributes, parameters: parameters))
    }

    private static let north = SubscriptionValues([
        "region": .text("north"), "price": .number(7), "urgent": .boolean(true),
    ])

    @Test(
        "comparisons, lists, and, or, not, parentheses",
        arguments: [
            (#"region == "north""#, true), (#"region != "north""#, false), ("price < 7", false), ("price <= 7", true),
            ("price > 6.5", true), ("price >= 7.5e0", false), (#"region startsWith "no""#, true),
            (#"region startsWith "nord""#, false), (#"region in ("south", "north")"#, true), ("price in (1, 2)", false),
            ("urgent == true and price == 7", true), ("urgent == false or price == 7", true),
            ("not urgent == true", false), ("not (price > 9 or urgent == false)", true),
            // `and` binds more tightly than `or`.
            ("price == 7 or price == 8 and price == 9", true), ("(price == 7 or price == 8) and price == 9", false),
            (#""north" == region"#, true), ("1 == 1", true), (#"region == "\u006eorth""#, true), ("price == -7", false),
            (#"region < "nz""#, true), (#"region > "a" and region < "z""#, true),
        ])
    func evaluates(filter: String, isTrue: Bool) throws {
        let rules = try Self.rules(filter)
        let resolved = rules.resolved(device: SubscriptionValues(), user: SubscriptionValues())
        #expect(resolved.matches(attributes: Self.north.text) == isTrue)
    }

    @Test("a missing value makes its comparison false, not the filter: not inverts it")
    func missing() throws {
        let none = SubscriptionValues()
        func matches(_ filter: String, _ attributes: SubscriptionValues = Self.north) throws -> Bool {
            try Self.rules(filter).resolved(device: none, user: none).matches(attributes: attributes.text)
        }
        #expect(try !matches("region == $region") && !matches("region != $region"))
        #expect(try matches("not region == $region") && matches("region != $region or price == 7"))
        #expect(try !matches(#"region != "x""#, none) && !matches("price in (1, 2)", none))
        #expect(try matches("price < $max"), "the default")
        // A changed configuration can declare another type for an attribute of an older push.
        #expect(try !matches("price == 7", SubscriptionValues(["price": .text("7")])))
    }

    @Test("of several values the device's counts, then the user's, then the default; one of a wrong type is none")
    func precedence() throws {
        let rules = try Self.rules("price < $max and region == $region")
        func text(_ device: SubscriptionValues, _ user: SubscriptionValues) -> String {
            rules.resolved(device: device, user: user).text
        }
        let filter = "price < $max and region == $region"
        #expect(text(.init(), .init()) == "{\"max\":10.0}\n" + filter)
        #expect(text(.init(), .init(["max": .number(3)])) == "{\"max\":3.0}\n" + filter)
        #expect(
            text(.init(["max": .number(2)]), .init(["max": .number(3), "region": .text("ö\"\n")]))
                == "{\"max\":2.0,\"region\":\"ö\\\"\\n\"}\n" + filter)
        #expect(text(.init(["max": .text("2")]), .init()) == "{\"max\":10.0}\n" + filter)
        // A parameter that the filter does not use changes nothing.
        #expect(text(.init(["urgent": .boolean(true)]), .init()) == text(.init(), .init()))
        let known = text(.init(["region": .text("a\u{1}\\")]), .init())
        #expect(try #require(ResolvedFilter(text: known)).text == known)
        #expect(ResolvedFilter(text: "")?.matches(attributes: "") == true && ResolvedFilter(text: "x") == nil)
    }

    @Test(
        "a filter that cannot be is refused with the place",
        arguments: [
            ("price", 6), ("price ==", 9), ("price == 7 and", 15), ("price = 7", 7), ("(price == 7", 12),
            ("price == 7)", 11), ("price == \"7\"", 10), ("colour == 1", 1), ("price == $colour", 10),
            ("price in ()", 11), ("price in (1, \"2\")", 14), ("urgent < true", 10), ("price startsWith 1", 18),
            (#"region == "north"#, 11), (#"region == "\x""#, 12), ("price == 1 price == 2", 12), ("== 1", 1),
            ("and == 1", 1), ("price == 1e999", 10), ("region == 'north'", 11), ("price ~ 7", 7),
        ])
    func faults(filter: String, position: Int) {
        #expect { try Self.rules(filter) } throws: { error in
            guard let fault = error as? SubscriptionFault else { return false }
            return fault.position == position && fault.reason.hasPrefix("filter, character \(position): ")
        }
    }

    @Test(
        "a declaration that cannot be is refused with the place",
        arguments: [
            ("region", "", 7), ("region string", "", 8), ("region text,", "", 13), ("a text, a number", "", 9),
            ("in text", "", 1), ("1a text", "", 1), ("a text = \"x\"", "", 8), ("", "a text = 1", 10),
            ("", "a number = \"1\"", 12), ("", "a boolean = yes", 13),
            (String(repeating: "a", count: 31) + " text", "", 1),
            ((0..<17).map { "a\($0) text" }.joined(separator: ","), "", 135), ("a text; b text", "", 7),
        ])
    func declarationFaults(attributes: String, parameters: String, position: Int) {
        #expect { try Self.rules("", attributes, parameters) } throws: { error in
            (error as? SubscriptionFault)?.position == position
        }
    }

    @Test("sizes are limited: 1,000 characters, 16 levels of any nesting") func bounds() throws {
        func nested(_ count: Int) -> String {
            String(repeating: "(", count: count) + "price == 1" + String(repeating: ")", count: count)
        }
        _ = try Self.rules(nested(15))
        #expect(throws: SubscriptionFault.self) { try Self.rules(nested(16)) }
        #expect(throws: SubscriptionFault.self) { try Self.rules(String(repeating: "not ", count: 200) + "price == 1") }
        let long = Array(repeating: "price == 1", count: 66).joined(separator: " and ")
        #expect(long.utf16.count == 985)
        _ = try Self.rules(long)
        _ = try Self.rules(long + " and price == 1")
        #expect(throws: SubscriptionFault.self) { try Self.rules(long + " and price == 11") }
    }

    @Test("attributes of a push are as declared, or the push is refused with their name") func attributes() throws {
        let rules = try Self.rules("")
        #expect(rules.fault(in: Self.north) == nil && rules.filter == nil)
        #expect(rules.fault(in: SubscriptionValues(["colour": .text("x")]))?.contains("colour") == true)
        #expect(rules.fault(in: SubscriptionValues(["price": .text("x")]))?.contains("price") == true)
        let long = String(repeating: "x", count: 201)
        #expect(rules.fault(in: SubscriptionValues(["region": .text(long)]))?.contains("200") == true)
        #expect(rules.fault(in: SubscriptionValues(["region": .text(String(long.dropLast()))])) == nil)
    }

    @Test(
        "values are read as JSON has them, and nothing else",
        arguments: [
            ("\"a\"", true), ("1", true), ("-1.5e3", true), ("true", true), ("false", true), ("null", false),
            ("", false), ("1x", false), ("\"a", false), ("{}", false), ("[1]", false), ("1e400", false), ("nan", false),
            ("\"\\ud83d\\ude00\"", true), ("\"\\ud83d\"", false), ("\"\\u0000\"", false), ("-", false), ("+1", false),
        ])
    func values(json: String, isRead: Bool) {
        let value = SubscriptionValue(json: json)
        #expect((value != nil) == isRead)
        if let value { #expect(SubscriptionValue(json: value.json) == value) }
    }

    // MARK: A naive evaluator

    /// A condition of the test, which can write itself as a filter and evaluate itself in plain Swift.
    private indirect enum Condition {
        case number(String, Int)
        case text(String, String)
        case isIn([Int])
        case both(Condition, Condition)
        case either(Condition, Condition)
        case negated(Condition)

        static func drawn(_ random: inout SeededGenerator, depth: Int) -> Condition {
            switch Int.random(in: 0..<(depth > 0 ? 6 : 3), using: &random) {
            case 0:
                return .number(
                    ["==", "!=", "<", "<=", ">", ">="].randomElement(using: &random) ?? "==",
                    .random(in: 0...3, using: &random))
            case 1:
                return .text(
                    ["==", "!=", "startsWith"].randomElement(using: &random) ?? "==",
                    ["a", "ab", "b"].randomElement(using: &random) ?? "a")
            case 2: return .isIn((0..<2).map { _ in .random(in: 0...3, using: &random) })
            case 3: return .both(drawn(&random, depth: depth - 1), drawn(&random, depth: depth - 1))
            case 4: return .either(drawn(&random, depth: depth - 1), drawn(&random, depth: depth - 1))
            default: return .negated(drawn(&random, depth: depth - 1))
            }
        }

        var text: String {
            switch self {
            case .number(let sign, let limit): "n \(sign) \(limit == 3 ? "$p" : "\(limit)")"
            case .text(let sign, let other): "t \(sign) \"\(other)\""
            case .isIn(let list): "n in (\(list.map(String.init).joined(separator: ", ")))"
            case .both(let left, let right): "(\(left.text) and \(right.text))"
            case .either(let left, let right): "(\(left.text) or \(right.text))"
            case .negated(let inner): "not (\(inner.text))"
            }
        }

        /// Evaluates the condition. `p` is the value of the parameter `$p`, which replaces the number 3.
        func holds(number: Int?, text: String?, p: Int?) -> Bool {
            switch self {
            case .number(let sign, let limit):
                guard let number, let limit = limit == 3 ? p : limit else { return false }
                switch sign {
                case "==": return number == limit
                case "!=": return number != limit
                case "<": return number < limit
                case "<=": return number <= limit
                case ">": return number > limit
                default: return number >= limit
                }
            case .text(let sign, let other):
                guard let text else { return false }
                return sign == "==" ? text == other : sign == "!=" ? text != other : text.hasPrefix(other)
            case .isIn(let list): return number.map(list.contains) ?? false
            case .both(let left, let right):
                return left.holds(number: number, text: text, p: p) && right.holds(number: number, text: text, p: p)
            case .either(let left, let right):
                return left.holds(number: number, text: text, p: p) || right.holds(number: number, text: text, p: p)
            case .negated(let inner): return !inner.holds(number: number, text: text, p: p)
            }
        }
    }

    @Test("5,000 drawn filters decide as a naive evaluator does, through their stored form too") func differential()
        throws
    {
        var random = SeededGenerator(seed: 17)
        var decisions: Set<Bool> = []
        for round in 0..<5_000 {
            let condition = Condition.drawn(&random, depth: 3)
            let rules = try Self.rules(condition.text, "n number, t text", "p number")
            let (number, p) = (Int.random(in: 0...4, using: &random), Int.random(in: 0...4, using: &random))
            let text = ["a", "ab", "abc", "b", nil].randomElement(using: &random) ?? nil
            var attributes = SubscriptionValues()
            attributes["n"] = number == 4 ? nil : .number(Double(number))
            attributes["t"] = text.map { .text($0) }
            let values = SubscriptionValues(p == 4 ? [:] : ["p": .number(Double(p))])
            let stored = rules.resolved(device: values, user: SubscriptionValues()).text
            let isTrue = try #require(ResolvedFilter(text: stored)).matches(attributes: attributes.text)
            decisions.insert(isTrue)
            #expect(
                isTrue == condition.holds(number: number == 4 ? nil : number, text: text, p: p == 4 ? nil : p),
                "round \(round): \(condition.text)")
        }
        #expect(decisions.count == 2)
    }
}
