import Foundation
import NIOHTTP1
import ServiceKit
import SyncModel
import TenantCalls

/// The meaning of a tenant's response to an operation; pure.
enum CallOutcome: Hashable, Sendable {
    /// The operation is executed. `imported` is the new state of the entity, JSON as the tenant wrote it.
    case accepted(message: String, imported: [UInt8]?)
    /// The operation is not executed and never will be.
    case refused(code: Int, message: String)
    /// It is unknown whether the operation is executed. The call is retried.
    ///
    /// - named: the pause that the tenant requests.
    /// - isAnswer: the tenant's endpoint responded. The circuit breaker counts only that.
    case again(code: Int, reason: String, named: Duration?, isAnswer: Bool)

    /// The largest size of a response in bytes.
    static let bytesMax = 65_536
    /// The deepest nesting of a response's JSON.
    private static let levels = 64

    /// Reads a response. A status of success means that the operation is executed, even if the body is not readable.
    init(_ response: TenantResponse) {
        let status = Int(response.status.code)
        let members = (try? JSONReader.members(of: response.body, levels: Self.levels)) ?? [:]
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
                code: status, reason: "the tenant answered with status \(status), neither success nor refusal",
                named: nil, isAnswer: true)
        }
    }

    /// The message for users and operators, shortened, and without NUL, which the database cannot store.
    private static func message(in members: [String: JSONValue]) -> String {
        guard case .string(let text)? = members["message"] else { return "" }
        let valid = text.replacing("\0", with: "")
        guard valid.utf16.count > Limits.operationMessageUnits else { return valid }
        return String(decoding: Array(valid.utf16.prefix(Limits.operationMessageUnits)), as: UTF16.self)
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

    /// Retry-After in seconds. A date, its other form, is ignored: the relay then uses its own pauses.
    private static func named(in headers: HTTPHeaders) -> Duration? {
        headers.first(name: "Retry-After").flatMap { Int64($0) }.flatMap { $0 >= 0 ? .seconds($0) : nil }
    }
}
