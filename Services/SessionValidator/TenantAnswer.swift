import SyncModel
import TenantCalls

/// Reads a tenant's answer to `com.antcloud.session.validate` in all the forms that tenants give it (spec V3); pure.
///
/// What is not of the form is unknown and not invalid: a broken proxy must not sign users out.
enum TenantAnswer {
    /// Bytes of an answer at the most (spec V7).
    static let bytesMax = 16_384

    /// Judges the body of an answer with status 200.
    ///
    /// - Parameter sessionID: what was asked about; an answer about another session is not valid.
    static func outcome(of body: some Collection<UInt8>, sessionID: String) -> CheckOutcome {
        guard body.count <= bytesMax else { return .unknown("the answer is longer than \(bytesMax) bytes") }
        guard let answer = AnswerJSON(body)?.members else { return .unknown("the answer is no JSON object") }
        var members = answer
        switch answer["response"] {
        case nil, .null?: break
        case .object(let wrapped)?: members = wrapped
        default: return .unknown("\"response\" is no object")
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
        _ members: [String: AnswerJSON], sessionID: String
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
    private static func result(in members: [String: AnswerJSON]) throws(Malformed) -> [String: AnswerJSON] {
        switch members["result"] {
        case nil, .null?: return [:]
        case .object(let result)?: return result
        case .text(let text)?:
            if let result = AnswerJSON(text.utf8)?.members { return result }
            throw Malformed(reason: "\"result\" is no object")
        default: throw Malformed(reason: "\"result\" is no object")
        }
    }

    /// A boolean, or its word in any case; nil when absent.
    private static func flag(_ name: String, in members: [String: AnswerJSON]) throws(Malformed) -> Bool? {
        switch members[name] {
        case nil, .null?: return nil
        case .bool(let value)?: return value
        case .text(let word)?:
            switch word.lowercased() {
            case "true": return true
            case "false": return false
            default: throw Malformed(reason: "\"\(name)\" is neither true nor false")
            }
        default: throw Malformed(reason: "\"\(name)\" is neither true nor false")
        }
    }

    /// A text; nil when absent.
    private static func text(_ name: String, in members: [String: AnswerJSON]) throws(Malformed) -> String? {
        switch members[name] {
        case nil, .null?: return nil
        case .text(let value)?: return value
        default: throw Malformed(reason: "\"\(name)\" is no text")
        }
    }
}
