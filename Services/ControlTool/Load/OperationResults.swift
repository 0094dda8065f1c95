import Foundation

/// An oplog of results, as far as a load run looks at it (DeviceProtocol.md, Results).
struct OperationResults: Decodable {
    struct Result: Decodable {
        let operationId: String
        let accepted: Bool
        let code: Int
    }

    let results: [Result]

    /// Nil: it is none.
    init?(_ payload: UnsafeRawBufferPointer) {
        guard let results = try? JSONDecoder().decode(Self.self, from: Data(payload)) else { return nil }
        self = results
    }
}
