public import MobileSync

/// Asks the tenant for ranges of keys by operations (README.md, Keys): each is an operation `grant` whose answer has the
/// range in its `import`.
///
/// A range that comes when nobody waits for it any more is lost: its keys are nobody's. Two sources of one client have
/// different components.
public final class KeyRangeOperations: KeyRangeSource {
    /// The component, unless the app's backend has another. No configuration has its name: what is granted to one
    /// device is no other's.
    public static let component = "KEY_RANGE"

    private let client: SyncClient
    private let component: String
    private let keysName: String
    private let userID: String?

    /// - Parameters:
    ///   - keys: what the keys are for, in the backend's words: the key of the operation, 1 to 256 bytes.
    ///   - userID: whose operations these are; nil: of whoever is bound.
    public init(client: SyncClient, keys: String, userID: String? = nil, component: String = component) {
        self.client = client
        self.component = component
        keysName = keys
        self.userID = userID
    }

    /// Submits a request and waits for its answer, as long as it takes; a cancelled one is taken back, if it still can
    /// be.
    ///
    /// - Throws: `EntityError.keysExhausted` when the server refuses or its answer has no range; `SyncError`;
    ///   `CancellationError`.
    public func requestRange(reporting use: [KeyUse]) async throws -> KeyRange {
        let used = use.map { part in
            JSONValue.object([
                "first": .integer(part.range.first), "last": .integer(part.range.last), "used": .integer(part.used),
            ])
        }
        let operation = SyncOperation(
            component: component, key: keysName, name: "grant",
            body: try JSONValue.object(["used": .array(used)]).bytes())
        try client.submit([operation], ofUser: userID)
        for try await result in client.operationResults(of: [component], ofUser: userID) {
            try await client.confirm(result)
            // Of a request that was given up.
            guard result.operationID == operation.id else { continue }
            return try Self.range(of: result)
        }
        _ = try? client.cancelOperations([operation.id], ofUser: userID)
        throw CancellationError()
    }

    private static func range(of result: SyncOperationResult) throws -> KeyRange {
        guard result.isAccepted, let imported = result.imported,
            let members = try? JSONValue(parsing: imported).members, case .integer(let first)? = members["first"],
            case .integer(let last)? = members["last"]
        else {
            throw EntityError(
                .keysExhausted, "the server granted no keys (\(result.code): \(result.message)); ask again later")
        }
        return KeyRange(first: first, last: last)
    }
}
