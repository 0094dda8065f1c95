import SyncModel
import Testing

@testable import BackendCalls
@testable import IngestAPI

/// A call at a limit that H2 permits, and the push that must reach the store.
struct IngestTableRow: CustomTestStringConvertible, Sendable {
    let name: String
    let scopes: [PushScope]
    let apply: @Sendable (inout IngestTableRequest) -> Void
    let isAsGiven: @Sendable (PushRequest) -> Bool

    init(
        _ name: String, scopes: [PushScope] = [.single, .global],
        apply: @escaping @Sendable (inout IngestTableRequest) -> Void,
        stored isAsGiven: @escaping @Sendable (PushRequest) -> Bool
    ) {
        self.name = name
        self.scopes = scopes
        self.apply = apply
        self.isAsGiven = isAsGiven
    }

    var testDescription: String { name }
}
