import Foundation

/// The payload of a result oplog, as far as a load run reads it (DeviceProtocol.md, Results).
struct OperationResults: Decodable {
    struct Result: Decodable {
        let operationId: String
        let accepted: Bool
        let code: Int
    }

    let results: [Result]

    /// Returns nil if the payload contains no results.
    init?(_ payload: UnsafeRawBufferPointer) {
        guard let results = try? JSONDecoder().decode(Self.self, from: Data(payload)) else { return nil }
        self = results
    }
}
