import Foundation
import Logging
import MobileSync
import Testing

@testable import ClientServices

@Suite("Diagnosis: parts as operations of the client", .timeLimit(.minutes(1))) struct DiagnosisOperationsTests {
    private let folder: TemporaryFolder
    private let client: SyncClient

    init() throws {
        folder = try TemporaryFolder()
        // No server listens there: the client never connects.
        client = try SyncClient(
            configuration: SyncClientConfiguration(
                host: "127.0.0.1", port: 1, instanceID: "space_app", deviceID: "d1",
                storePath: folder.url.appendingPathComponent("sync.sqlite").path),
            logger: .silent)
    }

    private static func part(bytes: Int) -> DiagnosisPart {
        let digest = String(repeating: "0a", count: 32)
        return DiagnosisPart(
            taskID: "t1", run: 1, file: "t1-1.log", fileBytes: bytes, fileSHA256: digest, number: 1, total: 1,
            bytes: Array(repeating: 7, count: bytes), sha256: digest)
    }

    @Test("the largest part fits into an operation; one byte more is refused before anything is stored")
    func size() async throws {
        try client.bind(userID: "u1", sessionID: "s1")
        let uploader = DiagnosisOperations(client: client, patience: .zero)
        await #expect(throws: ClientServiceError.self) {
            _ = try await uploader.submit(Self.part(bytes: DiagnosisOperations.partBytesMax))
        }
        do {
            _ = try await uploader.submit(Self.part(bytes: DiagnosisOperations.partBytesMax + 1))
        } catch let error as ClientServiceError {
            #expect(error.code == .invalidArgument)
        }
        #expect(DiagnosisSettings().partBytes <= DiagnosisOperations.partBytesMax)
        #expect(try client.pendingOperations().isEmpty)
    }

    @Test("without an answer in time, and when it is cancelled, the operation is withdrawn")
    func takenBack() async throws {
        try client.bind(userID: "u1", sessionID: "s1")
        do {
            _ = try await DiagnosisOperations(client: client, patience: .zero).submit(Self.part(bytes: 10))
            Issue.record("no service answers")
        } catch let error as ClientServiceError {
            #expect(error.code == .unanswered)
        }
        #expect(try client.pendingOperations().isEmpty)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [client] in _ = try await DiagnosisOperations(client: client).submit(Self.part(bytes: 10)) }
            while try client.pendingOperations().isEmpty { await Task.yield() }
            let pending = try client.pendingOperations()
            #expect(pending.map(\.component) == ["MSS_DIAGNOSIS"] && pending[0].key == "t1")
            group.cancelAll()
            await #expect(throws: (any Error).self) { try await group.waitForAll() }
        }
        #expect(try client.pendingOperations().isEmpty)
    }

    @Test("operations of an earlier run of the app are withdrawn first; the app's own operations stay")
    func leftOver() async throws {
        try client.bind(userID: "u1", sessionID: "s1")
        let own = SyncOperation(component: "ORDER", key: "1", name: "update")
        try client.submit([
            SyncOperation(component: DiagnosisUploads.syncID, key: "t0", name: "part", body: [1]), own,
        ])
        let uploader = DiagnosisOperations(client: client, patience: .zero)
        await #expect(throws: ClientServiceError.self) {
            try await uploader.refuse(taskID: "t1", run: 1, reason: .tooLarge)
        }
        #expect(try client.pendingOperations() == [own])
    }

    @Test("without a user nothing is sent")
    func nobody() async throws {
        let uploader = DiagnosisOperations(client: client)
        await #expect(throws: SyncError.self) { _ = try await uploader.submit(Self.part(bytes: 10)) }
    }
}
