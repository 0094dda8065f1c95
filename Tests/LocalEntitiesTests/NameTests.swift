import Foundation
import MobileSync
import Testing

@testable import LocalEntities

/// Names that apps and tenants of Sybase's API use: a change here breaks their code.
@Suite("Entities: Sybase's names") struct NameTests {
    private let file = StoreFile()

    @Test("comparisons, levels, pending changes, steps, statuses and errors have Sybase's names and numbers")
    func names() {
        #expect(
            AttributeTest.Comparison.allCases.map(\.rawValue) == [
                "IS_NULL", "NOT_NULL", "EQUAL", "NOT_EQUAL", "LIKE", "NOT_LIKE", "LESS_THAN", "LESS_EQUAL",
                "GREATER_THAN", "GREATER_EQUAL", "MATCH", "NOT_MATCH", "CONTAINS", "NOT_CONTAIN", "STARTS_WITH",
                "NOT_START_WITH", "ENDS_WITH", "NOT_END_WITH", "IN", "NOT_IN",
            ])
        #expect(LogLevel.allCases.map(\.rawValue) == ["OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG"])
        #expect(PendingChange.allCases == [.create, .update, .delete, .parent, .nothing])
        #expect(PendingChange.allCases.map(\.rawValue) == ["C", "U", "D", "P", "N"])
        #expect(
            SynchronizationContext.Status.allCases.map(\.rawValue) == [
                "STARTING", "UPLOADING", "DOWNLOADING", "FINISHING", "ERROR",
            ])
        #expect(SynchronizationAction.proceed.rawValue == "CONTINUE")
        #expect(SynchronizationAction.cancel.rawValue == "CANCEL")
        let statuses: [EntityConnectionStatus] = [
            .connected, .disconnected, .flightMode, .noCoverage, .waitingToConnect, .roaming, .lowStorage,
        ]
        #expect(statuses == EntityConnectionStatus.allCases && statuses.map(\.rawValue) == Array(1...7))
        let codes: [EntityError.Code] = [
            .noSuchClass, .noSuchAttribute, .noSuchParameter, .noSuchOperation, .wrongDataType, .objectNotFound,
            .persistence,
        ]
        #expect(
            codes.map(\.rawValue) == [
                "noSuchClass", "noSuchAttribute", "noSuchParameter", "noSuchOperation", "wrongDataType",
                "objectNotFound", "persistence",
            ])
    }

    @Test("a row's state has Sybase's names in queries, and its changes are sent as create, update and delete")
    func stateNames() {
        #expect(
            EntitySchema.stateNames == [
                "pending", "pendingChange", "isCreated", "isUpdated", "isDeleted", "replayCounter", "replayPending",
                "replayFailure", "hasLogRecords",
            ])
        let changes: [PendingChange] = [.create, .update, .delete]
        #expect(changes.map(\.operationName) == ["create", "update", "delete"])
    }

    @Test("a log record is sent with Sybase's members, and its level by name") func logRecord() async throws {
        let store = try file.open()
        _ = try store.newLogRecord(level: .warn, message: "odd", code: 405)
        try await store.submitLogRecords()
        let operation = try #require(file.submitter.operations.first)
        #expect(operation.component == "LogRecord" && operation.name == "create")
        guard case .array(let list)? = try JSONValue(parsing: operation.body).members?["logRecords"] else {
            throw EntityError(.wrongDataType, "no list")
        }
        let members = try #require(list.first?.members)
        #expect(
            Set(members.keys) == [
                "messageId", "component", "entityKey", "code", "level", "message", "operation", "requestId",
                "timestamp",
            ])
        #expect(members["level"] == "WARN" && members["code"] == 405)
    }
}
