import SyncModel

@testable import BackendCalls
@testable import IngestAPI

extension IngestTableFault {
    /// All single faults of H2 and H3.
    static let all =
        instanceID + thirdMessageID + bizType + linkToken + payload + binaryPayload + operatingSystem + versions
        + validTimeEnd + invalidUTF8 + duplicates + bodies + service

    /// The faults that can be in one call with this fault. Each pair occurs once: only later faults of the list count.
    static func partners(of fault: Self) -> [Self] {
        all.drop { $0.name != fault.name }.dropFirst().filter { $0.parts.isDisjoint(with: fault.parts) }
    }

    // MARK: Mandatory parameters

    private static let instanceID = [
        query("missing", .readable, ""), query("of another case", .readable, "?InstanceId=w_app"),
        query("empty", .readable, "?instanceId="), query("without value", .readable, "?instanceId"),
        query("twice", .readable, "?instanceId=w_app&instanceId=w_app"),
        query("no UTF-8", .readable, "?instanceId=w_app%FF"), query("half an escape", .readable, "?instanceId=w_app%4"),
        query("no hexadecimal escape", .readable, "?instanceId=%zz"),
        query("NUL", .form, "?instanceId=w%00app", "w\0app"),
    ]

    private static let thirdMessageID =
        missing("thirdMsgId", .thirdMessageIDGiven) + tooLong("thirdMsgId", 100, .thirdMessageIDLength)
        + wrongTypes("thirdMsgId") + [
            text("thirdMsgId", "NUL", .form, "t\u{0}1"),
            text("thirdMsgId", "NUL in 101 units", .thirdMessageIDLength, letters(100) + "\0"),
        ]

    private static let bizType =
        missing("bizType", .othersGiven) + tooLong("bizType", 30, .exists) + wrongTypes("bizType") + [
            text("bizType", "NUL", .form, "orders\u{0}"),
            text("bizType", "NUL in 31 units", .form, letters(30) + "\0"),
        ]

    private static let linkToken =
        missing("linkToken", .othersGiven) + tooLong("linkToken", 100, .form) + wrongTypes("linkToken") + [
            text("linkToken", "NUL", .form, "\u{0}u1"),
            text("linkToken", "NUL in 101 units", .form, letters(100) + "\0"),
        ]

    // MARK: Payloads

    private static let payload =
        missing("payload", .othersGiven, also: "binaryPayload") + tooLong("payload", 4_096, .payloadLength) + [
            json("payload", "4097 escaped units", .payloadLength, "\"" + repeated("\\ud83d\\ude00", 2_048) + "a\""),
            json("payload", "an object of 4097 units", .payloadLength, object(4_097)),
            json("payload", "an array of 4097 units", .payloadLength, array(4_097)),
            text("payload", "NUL in 4097 units", .payloadLength, letters(4_096) + "\0"),
            json("payload", "number", .form, "1"), json("payload", "true", .form, "true"),
            json("payload", "false", .form, "false"),
            // payload has precedence over any binaryPayload.
            Self("payload: number beside long binaryPayload", .form, in: ["payload", "binaryPayload"]) {
                $0.set("payload", json: "1")
                $0.set("binaryPayload", text: letters(4_100))
            },
            Self("payload: long beside binaryPayload: number", .payloadLength, in: ["payload", "binaryPayload"]) {
                $0.set("payload", text: letters(4_097))
                $0.set("binaryPayload", json: "1")
            },
        ]

    private static let binaryPayload: [Self] =
        [
            binary("null, payload missing", .othersGiven, "null"),
            binary("empty, payload missing", .othersGiven, "\"\""),
            binary("line breaks alone, payload missing", .othersGiven, quoted("\\r\\n\\n")),
            binary("4097 units", .payloadLength, quoted(letters(4_097))),
            binary("4100 units and line breaks", .payloadLength, quoted(letters(4_100) + "\\r\\n")),
            binary("4100 units of Base64", .payloadLength, quoted(letters(4_100))),
            binary("4097 units of emoji", .payloadLength, quoted(emoji(4_097))),
            binary("4096 units of emoji", .form, quoted(emoji(4_096))),
            binary("4095 units, no Base64", .form, quoted(letters(4_095))),
        ]
        + ["1", "true", "[]", "{}", "[\"AAAA\"]"].map { binary("type of \($0)", .form, $0) }
        + ["AP8", "A P8=", "AP-_", "AP8=\\t", "AP8=\\u0085", "A\\nP8", "AP9=", "AAA\\u0000", "😀"].map {
            binary("no Base64 in \($0)", .form, quoted($0))
        }

    // MARK: Targeting and validity

    private static let operatingSystem =
        wrongTypes("osType")
        + [
            "iOS ", "windows", letters(9), letters(10), letters(11), emoji(10), emoji(11), "android\0", "iOS,Android",
        ].map { text("osType", "\($0.debugDescription)", .form, $0) }

    private static let versions =
        ["appMinVersion", "appMaxVersion"].flatMap { name in
            let forms = [
                "1.x", "1..2", ".1", "1.", "v1", "-1", "1 ", "1.0\0", "١", emoji(20), emoji(21),
                repeated("1", 21), repeated("1.", 10) + "2.3",
            ]
            return wrongTypes(name) + forms.map { text(name, "\($0.debugDescription)", .form, $0) }
        } + [
            Self("appMinVersion: above appMaxVersion", .form, in: ["appMinVersion", "appMaxVersion"]) {
                $0.set("appMinVersion", text: "10")
                $0.set("appMaxVersion", text: "9.9")
            }
        ]

    private static let validTimeEnd =
        [
            "true", "false", "[]", "{}", "[1767225600000]", "176722560000", "17672256000000", "1767225600000.0",
            "1.767225600000e12", "-767225600000", "-1767225600000", "0",
        ].map { json("validTimeEnd", $0, .form, $0) }
        + [
            "176722560000", "17672256000000", "17672256000x0", "1767225600.00", "+767225600000", " 767225600000",
            "1767225600000\0", "2026-01-01T00", emoji(13), "١٧٦٧٢٢٥٦٠٠٠٠٠",
        ].map { text("validTimeEnd", "\($0.debugDescription)", .form, $0) }

    // MARK: The body as a whole

    private static let invalidUTF8 = parameters.sorted().map { name in
        Self("\(name): no UTF-8", .readable, in: [name]) { $0.set(name, bytes: [0x22, 0x61, 0xFF, 0x22]) }
    }

    private static let duplicates = parameters.sorted().map { name in
        Self("\(name): sent twice", .readable, in: ["second \(name)"]) { $0.repeatedNames.append(name) }
    }

    private static let bodies: [Self] =
        [
            body("a member twice, once escaped") { $0.closing = ",\"\\u0070ayload\":1,\"payload\":1" + $0.closing },
            body("an unknown member twice") { $0.closing = ",\"twice\":1,\"twice\":1" + $0.closing },
            body("an inner member twice") { $0.closing = ",\"inner\":[{\"a\":1,\"a\":1}]" + $0.closing },
            body("17 levels") { $0.set("deep", json: nested(16)) },
            body("an unknown member without UTF-8") { $0.set("broken", bytes: [0x22, 0xC0, 0x80, 0x22]) },
            body("half a surrogate pair") { $0.set("half", json: "\"\\ud83d\"") },
            body("an array") { ($0.opening, $0.closing) = ("[" + $0.opening, $0.closing + "]") },
            body("cut off") { $0.closing.removeLast() },
            body("two objects") { $0.closing += "{}" },
            body("a byte order mark") { $0.opening = "\u{FEFF}" + $0.opening },
            Self("payload: 17 levels", .readable, in: ["payload"]) { $0.set("payload", json: nested(16)) },
        ]
        + ["", " ", "null", "[]", "1", "{", "\"{}\""].map { text in
            Self("body: only \(text.debugDescription)", .readable, in: ["body"]) { $0.otherBody = text }
        }

    // MARK: Instances and Sync IDs

    private static let service: [Self] = [
        Self("instance: unknown", .exists, in: ["instance"]) { $0.instance = .absent },
        Self("instance: disabled", .exists, in: ["instance"]) { $0.instance = .off },
        Self("configuration: unknown", .exists, in: ["configuration"]) { $0.configuration = .absent },
        Self("configuration: offline", .exists, in: ["configuration"]) { $0.configuration = .off },
        Self("configuration: of the other scope", .scope, in: ["scope"]) { $0.isOfOtherScope = true },
        Self("store: repeat", .firstTime, in: ["store"]) { $0.outcome = .duplicate(OplogID(3)) },
        Self("store: outcome unknown", .outcome, in: ["store"]) { $0.outcome = .unknown },
    ]

    // MARK: Parts

    private static func repeated(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }

    private static func quoted(_ text: String) -> String { "\"\(text)\"" }

    /// A fault of instanceId. The service knows an instance with the decoded name of the query.
    private static func query(
        _ what: String, _ check: IngestTableCheck, _ query: String, _ instance: String = ""
    ) -> Self {
        Self("instanceId: \(what)", check, in: ["instanceId"]) {
            $0.query = query
            $0.knownInstances.append(instance)
        }
    }

    private static func text(_ name: String, _ what: String, _ check: IngestTableCheck, _ text: String) -> Self {
        Self("\(name): \(what)", check, in: [name]) { $0.set(name, text: text) }
    }

    private static func json(_ name: String, _ what: String, _ check: IngestTableCheck, _ json: String) -> Self {
        Self("\(name): \(what)", check, in: [name]) { $0.set(name, json: json) }
    }

    /// A fault of binaryPayload as the only payload.
    private static func binary(_ what: String, _ check: IngestTableCheck, _ json: String) -> Self {
        Self("binaryPayload: \(what)", check, in: ["payload", "binaryPayload"]) {
            $0.remove("payload")
            $0.set("binaryPayload", json: json)
        }
    }

    private static func body(_ what: String, apply: @escaping @Sendable (inout IngestTableRequest) -> Void) -> Self {
        Self("body: \(what)", .readable, in: ["body: \(what)"], apply: apply)
    }

    private static func missing(_ name: String, _ check: IngestTableCheck, also other: String? = nil) -> [Self] {
        let parts = Set([name, other].compactMap { $0 })
        return [
            Self("\(name): missing", check, in: parts) { $0.remove(name) },
            Self("\(name): null", check, in: parts) { $0.set(name, json: "null") },
            Self("\(name): empty", check, in: parts) { $0.set(name, json: "\"\"") },
        ]
    }

    private static func tooLong(_ name: String, _ limit: Int, _ check: IngestTableCheck) -> [Self] {
        [
            text(name, "\(limit + 1) units", check, letters(limit + 1)),
            text(name, "\(limit + 1) units of emoji", check, emoji(limit + 1)),
            text(name, "\(limit + 2) units of emoji", check, emoji(limit + 2)),
        ]
    }

    /// Faults for each JSON type that is not a string.
    private static func wrongTypes(_ name: String) -> [Self] {
        ["1", "true", "false", "[]", "{}", "[\"a\"]"].map { json(name, "type of \($0)", .form, $0) }
    }
}
