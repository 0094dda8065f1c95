public import MobileSync

/// Requests ranges of keys from the tenant by operations (README.md, Keys). Each request is an operation `grant`; its
/// result has the range in its `import`.
///
/// A range that arrives after its request was cancelled is lost, and its keys stay unused. Two sources of one client
/// need different components.
public final class KeyRangeOperations: KeyRangeSource {
    /// The default component. Do not create a configuration with this name: it would push granted ranges to other
    /// devices.
    public static let component = "KEY_RANGE"

    private let client: SyncClient
    private let component: String
    private let keysName: String
    private let userID: String?

    /// Makes a source.
    ///
    /// - Parameters:
    ///   - keys: the backend's name for this kind of keys; it is the key of the operation, 1 to 256 bytes.
    ///   - userID: the user of the operations; nil: the bound user.
    public init(client: SyncClient, keys: String, userID: String? = nil, component: String = component) {
        self.client = client
        self.component = component
        keysName = keys
        self.userID = userID
    }

    /// Submits a request and waits for its result without a limit. Cancellation withdraws the request if it is not sent
    /// yet.
    ///
    /// - Throws: `EntityError.keysExhausted` when the server refuses or its result has no range; `SyncError`;
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
            // A result of an earlier, cancelled request.
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
