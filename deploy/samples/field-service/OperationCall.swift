import Foundation
import LocalEntities

/// What the relay asks the backend to do (deploy/README.md, Operations).
struct OperationCall: Decodable, Sendable {
    let component: String
    let entityKey: String
    let operation: String
    let userId: String
    var body: JSONValue?

    /// A member of the body.
    func member(_ name: String) -> JSONValue? {
        guard case .object(let members)? = body else { return nil }
        return members[name]
    }
}
