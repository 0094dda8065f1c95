import ServiceKit
import SyncModel

/// Reads a tenant's response to `com.antcloud.session.validate` in all forms that tenants use (V3); pure.
///
/// A malformed response is unknown, not invalid: a broken proxy must not sign users out.
enum TenantAnswer {
    /// The largest size of a response in bytes (V7).
    static let bytesMax = 16_384

    /// The outcome of a response with status 200.
    ///
    /// - Parameter sessionID: the session of the call. A response about another session is invalid.
    static func outcome(of body: some Collection<UInt8>, sessionID: String) -> CheckOutcome {
        guard body.count <= bytesMax else { return .unknown("the answer is longer than \(bytesMax) bytes") }
        guard let answer = object(Array(body)) else { return .unknown("the answer is no JSON object") }
        var members = answer
        switch answer["response"] {
        case nil, .null?: break
        case let value?:
            guard case .structure(let text) = value, let wrapped = object(text) else {
                return .unknown("\"response\" is no object")
            }
            members = wrapped
        }
        do throws(Malformed) {
            return try judge(members, sessionID: sessionID)
        } catch {
            return .unknown(error.reason)
        }
    }

    private struct Malformed: Error {
        let reason: String
    }

    private static func judge(
        _ members: [String: JSONValue], sessionID: String
    ) throws(Malformed) -> CheckOutcome {
        guard let isSuccess = try flag("success", in: members) else {
            throw Malformed(reason: "\"success\" is missing")
        }
        guard isSuccess else { return .unknown("the tenant says that the call failed") }
        for name in ["resultCode", "returnCode"] {
            guard let code = try text(name, in: members) else { continue }
            guard code == "OK" || code == "SUCCESS" else { return .invalid("the tenant's code is not OK") }
        }
        let result = try result(in: members)
        guard try flag("valid", in: result) == true else { return .invalid("the session is not valid") }
        let answeredID = try text("sid", in: result)
        guard answeredID?.isSame(as: sessionID) ?? true else {
            return .invalid("the answer is about another session")
        }
        return .valid
    }

    /// The members of `result`, an object or the JSON text of one; none when it is absent.
    private static func result(in members: [String: JSONValue]) throws(Malformed) -> [String: JSONValue] {
        let text: [UInt8]
        switch members["result"] {
        case nil, .null?: return [:]
        case .structure(let bytes)?: text = bytes
        case .string(let string)?: text = Array(string.utf8)
        default: text = []
        }
        guard let result = object(text) else { throw Malformed(reason: "\"result\" is no object") }
        return result
    }

    /// The members of a JSON object; nil for any other text.
    private static func object(_ text: [UInt8]) -> [String: JSONValue]? { try? JSONReader.members(of: text) }

    /// A boolean, or `true` or `false` as text in any case; nil if absent.
    private static func flag(_ name: String, in members: [String: JSONValue]) throws(Malformed) -> Bool? {
        switch members[name] {
        case nil, .null?: return nil
        case .bool(let value)?: return value
        case .string(let text)?:
            switch text.lowercased() {
            case "true": return true
            case "false": return false
            default: throw Malformed(reason: "\"\(name)\" is neither true nor false")
            }
        default: throw Malformed(reason: "\"\(name)\" is neither true nor false")
        }
    }

    /// A text; nil if absent.
    private static func text(_ name: String, in members: [String: JSONValue]) throws(Malformed) -> String? {
        switch members[name] {
        case nil, .null?: return nil
        case .string(let value)?: return value
        default: throw Malformed(reason: "\"\(name)\" is no text")
        }
    }
}
