import Foundation
public import MobileSync

/// Uploads parts of logs as operations of a `SyncClient`, under the Sync ID `MSS_DIAGNOSIS`. The service itself answers
/// these operations.
///
/// An operation needs a user, so nothing is uploaded while no user is bound. An operation that is withdrawn at the
/// moment of its sending can still be sent once, over any network.
public final class DiagnosisOperations: DiagnosisUploader {
    /// The largest size of a part, in bytes. Base64 of it, with the other members, fits in the body of one operation.
    public static let partBytesMax = 140_000
    /// The result code for "the service has stopped its attempts for now".
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
    private let resultTimeout: Duration

    /// Makes an uploader.
    ///
    /// - Parameters:
    ///   - client: the app's client.
    ///   - timeout: the longest wait for a result. After it, the operation is withdrawn and the part is sent again
    ///     later, possibly for another user.
    public init(client: SyncClient, patience timeout: Duration = .seconds(600)) {
        self.client = client
        resultTimeout = timeout
    }

    /// Sends one part as an operation and waits for its result.
    ///
    /// - Throws: `ClientServiceError`: `invalidArgument` for a part of more than `partBytesMax` bytes; `unanswered`;
    ///   `SyncError` when no user is bound or the client's store fails.
    public func submit(_ part: DiagnosisPart) async throws -> DiagnosisAnswer {
        guard part.bytes.count <= Self.partBytesMax else {
            throw ClientServiceError(.invalidArgument, "partBytes must be at most \(Self.partBytesMax) for operations")
        }
        let form = PartForm(
            run: part.run, file: part.file, fileBytes: part.fileBytes, fileSHA256: part.fileSHA256,
            number: part.number, total: part.total, sha256: part.sha256, base64: Data(part.bytes).base64EncodedString())
        let result = try await answer(to: "part", of: part.taskID, try JSONEncoder().encode(form))
        return result.isAccepted ? .taken : .refused("\(result.code) \(result.message)")
    }

    /// Reports by an operation that the device uploads nothing for a task.
    ///
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

    /// Submits an operation and waits for its result.
    private func answer(to name: String, of taskID: String, _ body: Data) async throws -> SyncOperationResult {
        // An operation that an earlier run of the app has left could be sent over a network that its task does not
        // allow.
        let component = DiagnosisUploads.syncID
        let left = try client.pendingOperations().filter { $0.component == component }
        _ = try client.cancelOperations(left.map(\.id))
        let operation = SyncOperation(component: component, key: taskID, name: name, body: Array(body))
        try client.submit([operation])
        // Withdraws the operation in every case; an operation that has a result is not affected.
        defer { _ = try? client.cancelOperations([operation.id]) }
        let result = try await withThrowingTaskGroup(of: SyncOperationResult?.self) { group in
            group.addTask { [client] in
                for try await result in client.operationResults(of: component) {
                    try await client.confirm(result)
                    if result.operationID == operation.id { return result }
                }
                return nil
            }
            group.addTask { [resultTimeout] in
                try await Task.sleep(for: resultTimeout)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
        try Task.checkCancellation()
        guard let result, result.code != Self.givenUp else {
            throw ClientServiceError(.unanswered, "the service has not answered in time; the part is sent again later")
        }
        return result
    }
}
