import BackendCalls
import Foundation
import NIOHTTP1
import SyncModel
import TenantCalls

/// What a tenant's answer to an operation means; pure.
enum CallOutcome: Hashable, Sendable {
    /// It is done. The new state of the entity is JSON as the tenant spelt it.
    case accepted(message: String, imported: [UInt8]?)
    /// It is not done and never will be.
    case refused(code: Int, message: String)
    /// It may or may not be done: it is tried again.
    ///
    /// - isAnswer: the tenant's endpoint was there to answer, which is all that its circuit breaker counts.
    case again(code: Int, reason: String, named: Duration?, isAnswer: Bool)

    /// Bytes of an answer at the most.
    static let bytesMax = 65_536
    /// Levels of an answer's JSON.
    private static let levels = 64

    /// Reads an answer. What is done is done, whatever its body looks like.
    init(_ response: TenantResponse) {
        let status = Int(response.status.code)
        let members = (try? JSONObjectReader.members(of: response.body, levels: Self.levels)) ?? [:]
        switch status {
        case 200..<300:
            self = .accepted(message: Self.message(in: members), imported: Self.json(members["import"]))
        case 408, 425, 429, 500...:
            let isAbsence = [429, 502, 503, 504].contains(status)
            self = .again(
                code: status, reason: "the tenant answered with status \(status)",
                named: Self.named(in: response.headers), isAnswer: !isAbsence)
        case 400..<500:
            var code = status
            if case .number(let text)? = members["code"], let own = Int(text), (400...999).contains(own) { code = own }
            self = .refused(code: code, message: Self.message(in: members))
        default:
            self = .again(
                code: status, reason: "the tenant answered with status \(status), which says nothing of the operation",
                named: nil, isAnswer: true)
        }
    }

    /// What is said to people: bounded, and without NUL, which a database cannot keep.
    private static func message(in members: [String: JSONValue]) -> String {
        guard case .string(let text)? = members["message"] else { return "" }
        let kept = text.replacing("\0", with: "")
        guard kept.utf16.count > Limits.operationMessageUnits else { return kept }
        return String(decoding: Array(kept.utf16.prefix(Limits.operationMessageUnits)), as: UTF16.self)
    }

    private static func json(_ value: JSONValue?) -> [UInt8]? {
        switch value {
        case nil, .null?: return nil
        case .bool(let bool)?: return Array("\(bool)".utf8)
        case .number(let text)?: return Array(text.utf8)
        case .string(let text)?:
            var json = ""
            json.appendJSONString(text)
            return Array(json.utf8)
        case .structure(let bytes)?: return bytes
        }
    }

    /// Retry-After in seconds; its other form, a date, is left to the pauses.
    private static func named(in headers: HTTPHeaders) -> Duration? {
        headers.first(name: "Retry-After").flatMap { Int64($0) }.flatMap { $0 >= 0 ? .seconds($0) : nil }
    }
}
