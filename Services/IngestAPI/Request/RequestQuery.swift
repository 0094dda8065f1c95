import BackendCalls
import NIOHTTP1
import SyncModel

/// The query parameters of a request target; pure.
struct RequestQuery: Sendable {
    /// A nil value: the parameter occurs more than once, or its encoding is invalid.
    private var values: [String: String?] = [:]

    /// Reads the part of the target after the question mark.
    init(_ head: HTTPRequestHead) {
        let target = head.target
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else { return }
        for pair in target[target.utf8.index(after: mark)...].split(separator: "&") {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Self.percentDecoded(parts[0]) else { continue }
            let value = parts.count > 1 ? Self.percentDecoded(parts[1]) : ""
            values[name] = .some(values[name] == nil ? value : nil)
        }
    }

    /// The value of a parameter; nil when it is absent, repeated or wrongly encoded.
    subscript(name: String) -> String? { values[name] ?? nil }

    /// Whether the call is a dry run.
    ///
    /// - Throws: for any value except `true` and `false`, so that a mistyped dry run does not become a push.
    var isDryRun: Bool {
        get throws(PushRefusal) {
            guard let given = values["dryRun"] else { return false }
            switch given {
            case "true"?: return true
            case "false"?: return false
            default: throw PushRefusal(.argsIsNull, "dryRun is neither true nor false; send one of them once.")
            }
        }
    }

    private static func percentDecoded(_ text: Substring) -> String? {
        guard text.utf8.contains(UInt8(ascii: "%")) else { return String(text) }
        var bytes: [UInt8] = []
        var rest = text.utf8
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = hexDigit(rest.popFirst()), let low = hexDigit(rest.popFirst()) else { return nil }
            bytes.append(high << 4 | low)
        }
        return String(validating: bytes, as: UTF8.self)
    }

    private static func hexDigit(_ byte: UInt8?) -> UInt8? {
        byte.flatMap { Character(Unicode.Scalar($0)).hexDigitValue }.map { UInt8($0) }
    }
}
