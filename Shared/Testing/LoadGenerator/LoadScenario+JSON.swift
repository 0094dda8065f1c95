/// A key of a scenario's JSON.
private struct ScenarioKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
}

/// One object of a scenario's JSON. Unknown keys are errors.
private struct ScenarioObject {
    private let container: KeyedDecodingContainer<ScenarioKey>

    init(_ decoder: any Decoder, keys: Set<String>) throws {
        guard let container = try? decoder.container(keyedBy: ScenarioKey.self) else {
            throw LoadScenarioError(place: Self.place(decoder.codingPath), expected: "expected an object")
        }
        self.container = container
        for key in container.allKeys.map(\.stringValue).sorted() where !keys.contains(key) {
            throw error(key, "unknown key; known keys: \(keys.sorted().joined(separator: ", "))")
        }
    }

    func has(_ key: String) -> Bool { container.contains(ScenarioKey(stringValue: key)) }

    func number(_ key: String, in range: ClosedRange<Int>, default standard: Int? = nil) throws -> Int {
        if !has(key), let standard { return standard }
        let value = try? container.decode(Int.self, forKey: ScenarioKey(stringValue: key))
        guard let value, range.contains(value) else {
            throw error(key, "expected a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    func text(_ key: String, default standard: String? = nil) throws -> String {
        if !has(key), let standard { return standard }
        let value = try? container.decode(String.self, forKey: ScenarioKey(stringValue: key))
        guard let value, !value.isEmpty else { throw error(key, "expected a text") }
        return value
    }

    func word(_ key: String, of words: [String], default standard: String? = nil) throws -> String {
        let value = try? text(key, default: standard)
        guard let value, words.contains(value) else {
            throw error(key, "expected one of \(words.map { "\"\($0)\"" }.joined(separator: ", "))")
        }
        return value
    }

    func list<Element: Decodable>(_ key: String, of: Element.Type) throws -> [Element] {
        do {
            let list = try container.decode([Element].self, forKey: ScenarioKey(stringValue: key))
            if !list.isEmpty { return list }
        } catch let error as LoadScenarioError {
            throw error
        } catch {}
        throw error(key, "expected a list that is not empty")
    }

    func object<Element: Decodable>(_ key: String, of: Element.Type) throws -> Element {
        try container.decode(Element.self, forKey: ScenarioKey(stringValue: key))
    }

    func error(_ key: String, _ expected: String) -> LoadScenarioError {
        LoadScenarioError(place: Self.place(container.codingPath + [ScenarioKey(stringValue: key)]), expected: expected)
    }

    private static func place(_ path: [any CodingKey]) -> String {
        path.reduce("") { text, key in
            if let index = key.intValue { return "\(text)[\(index)]" }
            return text.isEmpty ? key.stringValue : "\(text).\(key.stringValue)"
        }
    }
}

extension LoadScenario: Decodable {
    init(from decoder: any Decoder) throws {
        let object = try ScenarioObject(
            decoder,
            keys: [
                "name", "about", "users", "devicesPerUser", "payloadBytes", "connections", "bizType", "globalBizType",
                "slow", "steps",
            ])
        self.init(name: try object.text("name"), steps: try object.list("steps", of: LoadStep.self))
        users = try object.number("users", in: 1...1_000_000, default: users)
        devicesPerUser = try object.number(
            "devicesPerUser", in: 1...PushStateTable.devicesPerUserMax, default: devicesPerUser)
        payloadBytes = try object.number("payloadBytes", in: PushStamp.bytes...4_096, default: payloadBytes)
        connections = try object.number("connections", in: 1...1_000, default: connections)
        bizType = try object.text("bizType", default: bizType)
        globalBizType = try object.text("globalBizType", default: globalBizType)
        slow = object.has("slow") ? try object.object("slow", of: Slow.self) : nil
        try check()
    }
}

extension LoadScenario.Slow: Decodable {
    init(from decoder: any Decoder) throws {
        let object = try ScenarioObject(decoder, keys: ["percent", "milliseconds"])
        self.init(
            percent: try object.number("percent", in: 1...100),
            milliseconds: try object.number("milliseconds", in: 1...10_000))
    }
}

extension LoadStep: Decodable {
    init(from decoder: any Decoder) throws {
        let words = ["connect", "disconnect", "idle", "push", "reconnect", "operate", "together"]
        let kind = try ScenarioObject(decoder, keys: Self.allKeys).word("do", of: words)
        let object = try ScenarioObject(decoder, keys: (Self.keys[kind] ?? []).union(["do", "name"]))
        name = try object.text("name", default: kind)
        switch kind {
        case "connect": parts = [.connect(concurrency: try object.number("concurrency", in: 1...10_000, default: 64))]
        case "disconnect": parts = [.disconnect]
        case "idle": parts = [.idle(seconds: try Self.seconds(object))]
        case "reconnect":
            parts = [
                .reconnect(
                    perSecond: try object.number("rate", in: 1...10_000), seconds: try Self.seconds(object))
            ]
        case "operate":
            parts = [
                .operate(
                    OperationStream(
                        perSecond: try object.number("rate", in: 1...1_000_000), seconds: try Self.seconds(object),
                        entities: try object.number("entities", in: 1...1_000, default: 4),
                        burst: try object.number("burst", in: 1...1_000, default: 1)))
            ]
        case "together":
            parts = try object.list("steps", of: LoadStep.self).flatMap(\.parts)
            for part in parts {
                switch part {
                case .push, .reconnect, .operate: break
                default: throw object.error("steps", "only push, operate and reconnect can run together")
                }
            }
        default: parts = [.push(try Self.stream(object))]
        }
    }

    private static let keys: [String: Set<String>] = [
        "connect": ["concurrency"], "disconnect": [], "idle": ["seconds"], "reconnect": ["rate", "seconds"],
        "operate": ["rate", "seconds", "entities", "burst"],
        "push": ["rate", "window", "each", "times", "seconds", "call", "items", "users"], "together": ["steps"],
    ]
    private static let allKeys = keys.values.reduce(into: Set(["do", "name"])) { $0.formUnion($1) }

    private static func seconds(_ object: ScenarioObject) throws -> Int {
        try object.number("seconds", in: 1...86_400)
    }

    private static func stream(_ object: ScenarioObject) throws -> PushStream {
        let paces = ["rate", "window", "each", "times"].filter { object.has($0) }
        guard paces.count == 1 else {
            throw object.error("rate", "expected exactly one of rate, window, each, times")
        }
        let isTimed = paces[0] == "rate" || paces[0] == "window"
        if !isTimed, object.has("seconds") { throw object.error("seconds", "seconds needs a rate or a window") }
        let pace: PushStream.Pace =
            switch paces[0] {
            case "rate": .rate(perSecond: try object.number("rate", in: 1...1_000_000), seconds: try seconds(object))
            case "window": .window(try object.number("window", in: 1...1_000_000), seconds: try seconds(object))
            case "each": .each(try object.number("each", in: 1...1_000_000))
            default: .times(try object.number("times", in: 1...PushStateTable.globalsMax))
            }
        let call = try object.word("call", of: ["single", "batch", "global"], default: "single")
        guard (call == "global") == (paces[0] == "times") else {
            throw object.error("call", "times needs a global call, and a global call needs times")
        }
        if call != "batch", object.has("items") { throw object.error("items", "items needs a batch call") }
        let items = call == "batch" ? try object.number("items", in: 1...500) : 1
        if case .each(let count) = pace, count % items != 0 {
            throw object.error("each", "expected a multiple of items")
        }
        let users = object.has("users") ? try object.number("users", in: 1...1_000_000) : nil
        return PushStream(
            pace: pace, call: call == "batch" ? .batch(items: items) : call == "global" ? .global : .single,
            users: users)
    }
}
