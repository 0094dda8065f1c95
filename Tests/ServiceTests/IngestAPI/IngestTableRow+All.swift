import SyncModel

@testable import BackendCalls
@testable import IngestAPI

extension IngestTableRow {
    /// All rows with the answer SUCCESS.
    static let all = identifiers + instanceIDs + payloads + binaryPayloads + targeting + validity + bodies

    // MARK: Ids

    private static let identifiers: [Self] =
        edges(30).map { text in
            Self("bizType: \(text.utf16.count) units \(text.prefix(1))", apply: { $0.set("bizType", text: text) }) {
                $0.bizType.text == text
            }
        }
        + edges(100).flatMap { text in
            [
                Self(
                    "linkToken: \(text.utf16.count) units \(text.prefix(1))", scopes: [.single],
                    apply: { $0.set("linkToken", text: text) }
                ) { $0.linkToken == text },
                Self(
                    "thirdMsgId: \(text.utf16.count) units \(text.prefix(1))",
                    apply: { $0.set("thirdMsgId", text: text) }
                ) {
                    $0.thirdMessageID.text == text
                },
            ]
        }

    private static let instanceIDs = [
        instanceID("escaped", "?instanceId=w%5F%61pp", "w_app"),
        instanceID("among others", "?a=b&instanceId=w_app&c", "w_app"),
        instanceID("emoji", "?instanceId=%F0%9F%98%80", "😀"),
    ]

    // MARK: Payloads

    private static let payloads: [Self] =
        edges(4_096).map { payload("\($0.utf16.count) units \($0.prefix(1))", "\"\($0)\"", stored: $0) } + [
            payload(
                "4096 escaped units", "\"" + String(repeating: "\\ud83d\\ude00", count: 2_048) + "\"",
                stored: IngestTableFault.emoji(4_096)),
            payload("NUL", #""a\u0000b""#, stored: "a\0b"), payload("empty object", "{ }", stored: "{}"),
            payload("empty array", "[\n]", stored: "[]"),
            payload(
                "order and spelling kept", #"{ "b": 1.0, "a": [ 1e2, -0 ], "\u0063" : "x \n" }"#,
                stored: #"{"b":1.0,"a":[1e2,-0],"\u0063":"x \n"}"#),
            payload(
                "white space not counted", "[" + String(repeating: " ", count: 5_000) + "1]", stored: "[1]"),
            payload("16 levels", IngestTableFault.nested(15), stored: IngestTableFault.nested(15)),
            payload(
                "names that only look alike", "{\"\u{E9}\":1,\"e\u{301}\":2}", stored: "{\"\u{E9}\":1,\"e\u{301}\":2}"),
        ]
        + [4_095, 4_096].flatMap { units in
            [
                payload("object of \(units)", IngestTableFault.object(units), stored: IngestTableFault.object(units)),
                payload("array of \(units)", IngestTableFault.array(units), stored: IngestTableFault.array(units)),
            ]
        }

    private static let binaryPayloads: [Self] =
        [4_092, 4_096].map { units in
            binary("\(units) units", without: { $0.remove("payload") }, IngestTableFault.letters(units), units / 4 * 3)
        } + [
            binary("payload null", without: { $0.set("payload", json: "null") }, "AAAA", 3),
            binary("payload empty", without: { $0.set("payload", text: "") }, "AA==", 1),
        ]
        // The line breaks of MIME, PEM and `base64` are ignored.
        + [("CRLF", 76, "\\r\\n"), ("LF", 64, "\\n"), ("CR", 1, "\\r")].map { name, width, lineBreak in
            let line = IngestTableFault.letters(width) + lineBreak
            let rest = IngestTableFault.letters(4_096 % width) + lineBreak
            return binary(
                "4096 units with \(name)", without: { $0.remove("payload") },
                String(repeating: line, count: 4_096 / width) + rest, 3_072)
        }
        + ["1", "true", "[]", "{}", "null", #""""#, #""no Base64""#, #""\u0000""#, #""AAAA""#].map { json in
            Self("payload wins over binaryPayload \(json)", apply: { $0.set("binaryPayload", json: json) }) {
                !$0.isBinary && $0.payload == Array("p".utf8)
            }
        } + [
            Self(
                "payload wins over a long binaryPayload",
                apply: { $0.set("binaryPayload", text: IngestTableFault.letters(4_100)) },
                stored: { !$0.isBinary && $0.payload == Array("p".utf8) })
        ]

    // MARK: Targeting and validity

    private static let targeting: [Self] =
        [("ios", OperatingSystem.iOS), ("iOS", .iOS), ("IOS", .iOS), ("android", .android), ("ANDROID", .android)]
        .map { name, system in
            Self("osType: \(name)", apply: { $0.set("osType", text: name) }) {
                $0.targeting == Targeting(operatingSystem: system, minimumVersion: nil, maximumVersion: nil)
            }
        }
        + ["0", "1.2", "1.23456789012345678", "1.234567890123456789", "12345678901234567890"].flatMap { version in
            [
                Self("appMinVersion: \(version)", apply: { $0.set("appMinVersion", text: version) }) {
                    $0.targeting == Targeting(operatingSystem: nil, minimumVersion: version, maximumVersion: nil)
                },
                Self("appMaxVersion: \(version)", apply: { $0.set("appMaxVersion", text: version) }) {
                    $0.targeting == Targeting(operatingSystem: nil, minimumVersion: nil, maximumVersion: version)
                },
            ]
        }
        + [("2", "2.0"), ("2.0", "2"), ("9", "10"), ("1.09", "1.9")].map { minimum, maximum in
            Self(
                "appMinVersion: \(minimum) up to \(maximum)",
                apply: {
                    $0.set("appMinVersion", text: minimum)
                    $0.set("appMaxVersion", text: maximum)
                }
            ) { $0.targeting == Targeting(operatingSystem: nil, minimumVersion: minimum, maximumVersion: maximum) }
        }
        + ["osType", "appMinVersion", "appMaxVersion"].flatMap { name in
            ["null", #""""#].map { json in
                Self("\(name): \(json)", apply: { $0.set(name, json: json) }) { $0.targeting == .everyone }
            }
        }

    private static let validity: [Self] =
        [1_700_000_000_001, 1_767_225_600_000, 9_999_999_999_999].flatMap { time in
            ["\(time)", "\"\(time)\""].map { json in
                Self("validTimeEnd: \(json)", apply: { $0.set("validTimeEnd", json: json) }) {
                    $0.validUntil == WallTime(milliseconds: time)
                }
            }
        }
        + ["null", #""""#].map { json in
            Self("validTimeEnd: \(json)", apply: { $0.set("validTimeEnd", json: json) }) { $0.validUntil == nil }
        }

    // MARK: The body as a whole

    private static let bodies: [Self] =
        ["1", "null", "false", #""""#, "[]", #"{"payload":1}"#, IngestTableFault.nested(15)].map { json in
            unknown("an unknown member \(json)") { $0.set("unknown", json: json) }
        } + [
            unknown("a member of no name") { $0.set("", json: "1") },
            unknown("members of another case") {
                $0.set("THIRDMSGID", json: "1")
                $0.set("payLoad", json: "1")
            },
            unknown("instanceId in the body") { $0.set("instanceId", text: "w_off") },
            unknown("a long unknown member") { $0.set("x", text: IngestTableFault.letters(60_000)) },
            unknown("65536 bytes") { request in
                request.closing += String(repeating: " ", count: 65_536 - request.body.count)
            },
            unknown("white space around") { ($0.opening, $0.closing) = ("\r\n\t { \n", "\n } ") },
        ]

    // MARK: Parts

    /// Texts of one unit below the limit and of the limit, with characters of one and of two units.
    private static func edges(_ limit: Int) -> [String] {
        [limit - 1, limit].flatMap { [IngestTableFault.letters($0), IngestTableFault.emoji($0)] }
    }

    private static func instanceID(_ what: String, _ query: String, _ text: String) -> Self {
        Self(
            "instanceId: \(what)",
            apply: {
                $0.query = query
                $0.knownInstances = [text]
            }, stored: { $0.instanceID.text == text })
    }

    private static func payload(_ what: String, _ json: String, stored: String) -> Self {
        Self(
            "payload: \(what)", apply: { $0.set("payload", json: json) },
            stored: { !$0.isBinary && $0.payload == Array(stored.utf8) })
    }

    private static func binary(
        _ what: String, without: @escaping @Sendable (inout IngestTableRequest) -> Void, _ text: String, _ bytes: Int
    ) -> Self {
        Self(
            "binaryPayload: \(what)",
            apply: {
                without(&$0)
                $0.set("binaryPayload", text: text)
            }, stored: { $0.isBinary && $0.payload == Array(repeating: 0, count: bytes) })
    }

    /// Members that must not change the push.
    private static func unknown(
        _ what: String, apply: @escaping @Sendable (inout IngestTableRequest) -> Void
    ) -> Self {
        Self("body: \(what)", apply: apply) {
            $0.payload == Array("p".utf8) && $0.instanceID.text == "w_app" && $0.thirdMessageID.text == "t1"
        }
    }
}
