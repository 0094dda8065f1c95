import Foundation
public import MobileSync

/// Takes parts of logs up as operations of a `SyncClient`, under the Sync ID `MSS_DIAGNOSIS`, which the service answers
/// itself.
///
/// An operation is somebody's: nothing goes up while no user is bound. One that is taken back in the very moment in
/// which it is sent may still go up once, over whatever network there is then.
public final class DiagnosisOperations: DiagnosisUploader {
    /// Bytes of a part at the most: with all the rest, as Base64, it is the body of one operation.
    public static let partBytesMax = 140_000
    /// Given up by the service for now.
    private static let givenUp = 504

    private struct PartForm: Encodable {
        let run: Int
        let file: String
        let fileBytes: Int
        let fileSHA256: String
        let number: Int
        let total: Int
        let sha256: String
        let base64: String
    }

    private struct RefusalForm: Encodable {
        let run: Int
        let reason: String
    }

    private let client: SyncClient
    private let patience: Duration

    /// - Parameters:
    ///   - client: the app's own.
    ///   - patience: how long an answer may take; then the operation is taken back, and the part is sent again later,
    ///     perhaps for another user.
    public init(client: SyncClient, patience: Duration = .seconds(600)) {
        self.client = client
        self.patience = patience
    }

    /// - Throws: `ClientServiceError.invalidArgument` for a part of more than `partBytesMax` bytes; `unanswered`;
    ///   `SyncError` without a bound user, or when the client's store fails.
    public func submit(_ part: DiagnosisPart) async throws -> DiagnosisAnswer {
        guard part.bytes.count <= Self.partBytesMax else {
            throw ClientServiceError(.invalidArgument, "partBytes is at most \(Self.partBytesMax) for operations")
        }
        let form = PartForm(
            run: part.run, file: part.file, fileBytes: part.fileBytes, fileSHA256: part.fileSHA256,
            number: part.number, total: part.total, sha256: part.sha256, base64: Data(part.bytes).base64EncodedString())
        let result = try await answer(to: "part", of: part.taskID, try JSONEncoder().encode(form))
        return result.isAccepted ? .taken : .refused("\(result.code) \(result.message)")
    }

    /// - Throws: as `submit`.
    public func refuse(taskID: String, run: Int, reason: DiagnosisRefusal) async throws {
        let word =
            switch reason {
            case .tooLarge: "too-large"
            case .nothingThere: "nothing-there"
            case .unreadable, .byServer: "unreadable"
            }
        _ = try await answer(to: "refuse", of: taskID, try JSONEncoder().encode(RefusalForm(run: run, reason: word)))
    }

    /// Submits an operation and returns once its result is there.
    private func answer(to name: String, of taskID: String, _ body: Data) async throws -> SyncOperationResult {
        // What an earlier life of the app has left must not go up over a network that its task may not use.
        let component = DiagnosisUploads.syncID
        let left = try client.pendingOperations().filter { $0.component == component }
        _ = try client.cancelOperations(left.map(\.id))
        let operation = SyncOperation(component: component, key: taskID, name: name, body: Array(body))
        try client.submit([operation])
        // Taken back however this ends; of one that has its result nothing is left to take back.
        defer { _ = try? client.cancelOperations([operation.id]) }
        let result = try await withThrowingTaskGroup(of: SyncOperationResult?.self) { group in
            group.addTask { [client] in
                for try await result in client.operationResults(of: component) {
                    try await client.confirm(result)
                    if result.operationID == operation.id { return result }
                }
                return nil
            }
            group.addTask { [patience] in
                try await Task.sleep(for: patience)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
        try Task.checkCancellation()
        guard let result, result.code != Self.givenUp else {
            throw ClientServiceError(.unanswered, "the service has not answered; the part is sent again later")
        }
        return result
    }
}
