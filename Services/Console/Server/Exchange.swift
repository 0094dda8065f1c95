import Foundation
import ServiceKit
import SyncModel

/// One request, as routes see it: who asks, for what, in which language.
struct Exchange: Sendable {
    let method: Method
    /// The path as it was sent, without query.
    let path: String
    /// Named parts of the path.
    let parts: [String: String]
    /// The query's values, the first of each name; empty ones count as absent.
    let query: [String: String]
    let body: [UInt8]
    /// Nil: nobody is signed in.
    let visitor: Visitor?
    let language: Language
    /// What the browser was told to keep: the instance that was looked at last.
    var lastInstance: String?
    /// The other side's address.
    let source: String
    let requestID: String

    var words: Words { .of(language) }

    /// Who asks; routes that let nobody in without a session call it.
    func signedIn() throws(ConsoleFault) -> Visitor {
        guard let visitor else { throw .signedOut }
        return visitor
    }

    /// The instance of the path.
    var instanceID: InstanceID { InstanceID(parts["instance"] ?? "") }

    /// The instance that was looked at last, while it is there and the visitor may see it (spec C1).
    func chosenInstance(in directory: ControlDirectory) -> Instance? {
        guard let lastInstance, let instance = directory.instance(InstanceID(lastInstance)),
            visitor?.account.role(at: instance.id) != nil
        else { return nil }
        return instance
    }

    /// A named part of the path.
    func part(_ name: String) -> String { parts[name] ?? "" }

    /// The body as JSON.
    ///
    /// - Throws: `notJSON`, or `wrong` with the member that is missing or of another type.
    func input<Input: Decodable>(_ type: Input.Type) throws(ConsoleFault) -> Input {
        do {
            return try JSONDecoder().decode(type, from: Data(body.isEmpty ? Array("{}".utf8) : body))
        } catch DecodingError.keyNotFound(let key, _) {
            throw .wrong(key.stringValue, "fault.missing")
        } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
            throw .wrong(context.codingPath.last?.stringValue ?? "", "fault.wrongType")
        } catch DecodingError.dataCorrupted(let context) where isJSON {
            // Such as a number that is too large.
            throw .wrong(context.codingPath.last?.stringValue ?? "", "fault.wrongType")
        } catch {
            throw .notJSON
        }
    }

    private var isJSON: Bool { (try? JSONSerialization.jsonObject(with: Data(body))) != nil }

    /// A whole number of the query; the nearest within bounds; the default when it is absent.
    func number(_ name: String, in range: ClosedRange<Int64>, default standard: Int64) -> Int64 {
        query[name].flatMap(Int64.init).map { min(max($0, range.lowerBound), range.upperBound) } ?? standard
    }

    /// A moment of the query, in milliseconds since 1970; nil when absent.
    ///
    /// - Throws: `wrong` when it is none that there is up to the year 9999.
    func time(_ name: String) throws(ConsoleFault) -> WallTime? {
        guard let text = query[name] else { return nil }
        guard let milliseconds = Int64(text), (0...253_402_300_799_999).contains(milliseconds) else {
            throw .wrong(name, "fault.wrongType")
        }
        return WallTime(milliseconds: milliseconds)
    }
}
