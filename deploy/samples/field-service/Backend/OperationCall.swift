import Foundation
import MobileSync

/// The relay's call of an operation (deploy/manual/DeviceOperations.md).
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
