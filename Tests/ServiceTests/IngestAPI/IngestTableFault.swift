import SyncModel
import Testing

@testable import BackendCalls
@testable import IngestAPI

/// One fault of a call, and the check of H3 that finds it.
struct IngestTableFault: CustomTestStringConvertible, Sendable {
    /// A unique name, for example `linkToken: 101 units`.
    let name: String
    /// The parts of the call that the fault uses. Two faults with a common part cannot be in one call.
    let parts: Set<String>
    let apply: @Sendable (inout IngestTableRequest) -> Void
    private let check: IngestTableCheck

    init(
        _ name: String, _ check: IngestTableCheck, in parts: Set<String>,
        apply: @escaping @Sendable (inout IngestTableRequest) -> Void
    ) {
        self.name = name
        self.check = check
        self.parts = parts
        self.apply = apply
    }

    /// The check that fails in a call of this scope. A nil value means: no check fails, because a global push ignores
    /// linkToken.
    func check(in scope: PushScope) -> IngestTableCheck? {
        scope == .global && parts == ["linkToken"] && check != .readable ? nil : check
    }

    /// Whether a single item of a batch can have the fault.
    var isOfItem: Bool { check != .readable && parts.isSubset(of: Self.parameters) }

    var testDescription: String { name }

    /// The parameters in the body.
    static let parameters: Set = [
        "bizType", "linkToken", "thirdMsgId", "payload", "binaryPayload", "osType", "appMinVersion", "appMaxVersion",
        "validTimeEnd",
    ]

    /// A text of this many UTF-16 units: emoji of two units each, and one letter when the number is odd.
    static func emoji(_ units: Int) -> String {
        String(repeating: "😀", count: units / 2) + (units.isMultiple(of: 2) ? "" : "a")
    }

    static func letters(_ units: Int) -> String { String(repeating: "A", count: units) }

    /// An object whose text has this many UTF-16 units.
    static func object(_ units: Int) -> String { "{\"a\":\"" + emoji(units - 8) + "\"}" }

    /// An array whose text has this many UTF-16 units.
    static func array(_ units: Int) -> String { "[\"" + emoji(units - 4) + "\"]" }

    /// Nested arrays with this many levels.
    static func nested(_ levels: Int) -> String {
        String(repeating: "[", count: levels) + String(repeating: "]", count: levels)
    }
}
