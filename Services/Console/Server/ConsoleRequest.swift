import Foundation
import ServiceKit
import SyncModel

/// One request for a route, with its account and language.
struct ConsoleRequest: Sendable {
    let method: Method
    /// The path as received, without query.
    let path: String
    /// The values of the named parts of the path.
    let parts: [String: String]
    /// The first value of each name in the query; empty values are left out.
    let query: [String: String]
    let body: [UInt8]
    /// The value is nil when no account is signed in.
    let principal: RequestPrincipal?
    let language: Language
    /// The instance that was viewed last, from a cookie.
    var lastInstance: String?
    /// The source address, by `EntryRules`.
    let source: String
    let requestID: String

    var words: PageTexts { .of(language) }

    /// The signed-in account.
    ///
    /// - Throws: `signedOut` when there is none.
    func signedIn() throws(ConsoleFault) -> RequestPrincipal {
        guard let principal else { throw .signedOut }
        return principal
    }

    /// The instance that the path names.
    var instanceID: InstanceID { InstanceID(parts["instance"] ?? "") }

    /// The instance that was viewed last, if it still exists and the account may see it (C1).
    func chosenInstance(in directory: ControlDirectory) -> Instance? {
        guard let lastInstance, let instance = directory.instance(InstanceID(lastInstance)),
            principal?.account.role(at: instance.id) != nil
        else { return nil }
        return instance
    }

    /// The value of a named part of the path; empty when the path has no such part.
    func part(_ name: String) -> String { parts[name] ?? "" }

    /// Decodes the body as JSON.
    ///
    /// - Throws: `notJSON`; `wrong` with the member that is missing or has another type.
    func input<Input: Decodable>(_ type: Input.Type) throws(ConsoleFault) -> Input {
        do {
            return try JSONDecoder().decode(type, from: Data(body.isEmpty ? Array("{}".utf8) : body))
        } catch DecodingError.keyNotFound(let key, _) {
            throw .wrong(key.stringValue, "fault.missing")
        } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
            throw .wrong(context.codingPath.last?.stringValue ?? "", "fault.wrongType")
        } catch DecodingError.dataCorrupted(let context) where isJSON {
            // For example, a number that is too large.
            throw .wrong(context.codingPath.last?.stringValue ?? "", "fault.wrongType")
        } catch {
            throw .notJSON
        }
    }

    private var isJSON: Bool { (try? JSONSerialization.jsonObject(with: Data(body))) != nil }

    /// A whole number of the query, clamped to a range; the default when it is absent or not a number.
    func number(_ name: String, in range: ClosedRange<Int64>, default standard: Int64) -> Int64 {
        query[name].flatMap(Int64.init).map { min(max($0, range.lowerBound), range.upperBound) } ?? standard
    }

    /// A time of the query, in milliseconds since 1970; nil when it is absent.
    ///
    /// - Throws: `wrong` when it is not a time from 1970 to 9999.
    func time(_ name: String) throws(ConsoleFault) -> WallTime? {
        guard let text = query[name] else { return nil }
        guard let milliseconds = Int64(text), (0...253_402_300_799_999).contains(milliseconds) else {
            throw .wrong(name, "fault.wrongType")
        }
        return WallTime(milliseconds: milliseconds)
    }
}
