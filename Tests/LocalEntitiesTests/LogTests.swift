import Foundation
import MobileSync
import Testing

@testable import LocalEntities

@Suite("Entities: log records") struct LogTests {
    private let file = StoreFile()

    @Test("the device writes its own records, and submits them once") func own() async throws {
        let store = try file.open()
        #expect(try !store.hasLogRecords())
        let record = try store.newLogRecord(
            level: .warn, message: "odd", code: 404, component: "Incident", entityKey: "1", operation: "read")
        #expect(record.isOwn && record.timestamp == Date(timeIntervalSince1970: 1_000))
        _ = try store.newLogRecord(level: .debug, message: "more")
        #expect(try store.logRecords().map(\.message) == ["more", "odd"])
        try await store.submitLogRecords()
        try await store.submitLogRecords()
        let operation = try #require(file.submitter.operations.first)
        #expect(file.submitter.operations.count == 1 && operation.component == "LogRecord")
        let body = try JSONValue(parsing: operation.body).members
        guard case .array(let list)? = body?["logRecords"] else { throw EntityError(.wrongDataType, "no list") }
        #expect(list.map { $0.members?["message"] } == ["odd", "more"])
        #expect(list[0].members?["messageId"] == .text(record.messageID) && list[0].members?["code"] == 404)
        try store.deleteLogRecords(LogFilter())
        #expect(try store.logRecords().count == 2, "they are on their way")
        try await store.result(
            SyncOperationResult(operationID: operation.id, isAccepted: false, code: 500, level: "ERROR"))
        try await store.submitLogRecords()
        #expect(file.submitter.operations.count == 2, "refused, so they may go again")
        try await store.result(SyncOperationResult(operationID: file.submitter.operations[1].id, isAccepted: true))
        try await store.submitLogRecords()
        #expect(file.submitter.operations.count == 2)
        #expect(try store.logRecords().allSatisfy { !$0.isOwn })
        try store.deleteLogRecords(LogFilter())
        #expect(try !store.hasLogRecords())
    }

    @Test("records beyond one operation are sent in several, in order, and each answer applies to its own records")
    func manyRecords() async throws {
        let store = try file.open()
        let text = String(repeating: "\u{1}", count: 9_000)
        for number in 0..<7 { _ = try store.newLogRecord(level: .info, message: "\(number)\(text)") }
        try await store.submitLogRecords()
        let operations = file.submitter.operations
        #expect(operations.count == 3 && operations.allSatisfy { $0.fault == nil })
        let counts = try operations.map { operation in
            guard case .array(let list)? = try JSONValue(parsing: operation.body).members?["logRecords"] else {
                return 0
            }
            return list.count
        }
        #expect(counts == [3, 3, 1])
        try await store.result(SyncOperationResult(operationID: operations[1].id, isAccepted: true))
        #expect(try store.logRecords().reversed().map(\.isOwn) == [true, true, true, false, false, false, true])
        #expect(operations.allSatisfy { $0.key == "-" })
    }

    @Test("records are found by component, key, level and id, newest first") func filters() throws {
        let store = try file.open()
        for (number, level) in LogLevel.allCases.enumerated() {
            _ = try store.newLogRecord(
                level: level, message: "\(number)", component: number < 3 ? "A" : "B", entityKey: "\(number % 2)")
        }
        func found(_ filter: LogFilter) throws -> [String] { try store.logRecords(filter).map(\.message) }
        #expect(try found(LogFilter(component: "A")) == ["2", "1", "0"])
        #expect(try found(LogFilter(component: "A", entityKey: "0")) == ["2", "0"])
        #expect(try found(LogFilter(level: .error)) == ["2", "1", "0"])
        #expect(try found(LogFilter(entityKey: "1", level: .info)) == ["3", "1"])
        let last = try store.logRecords(limit: 1)
        #expect(last.map(\.message) == ["5"])
        #expect(try found(LogFilter(messageID: last[0].messageID)) == ["5"])
        #expect(try !store.hasLogRecords(LogFilter(component: "' OR 1 --")))
        try store.deleteLogRecords(LogFilter(component: "A"))
        #expect(try found(LogFilter()) == ["5", "4", "3"])
    }

    @Test("beyond the limit of records, the server's oldest are removed first") func bound() throws {
        let store = try file.open()
        _ = try store.newLogRecord(level: .info, message: "own")
        try store.write("filling") { transaction in
            for number in 0...EntityLimits.logRecords {
                try transaction.logs.add(
                    LogRecord(
                        messageID: "\(number)", component: "", entityKey: "", code: 200, level: .info,
                        message: "\(number)", operation: "", requestID: "",
                        timestamp: Date(timeIntervalSince1970: Double(number)), isOwn: false))
            }
        }
        let messages = try store.logRecords().map(\.message)
        #expect(messages.count == EntityLimits.logRecords)
        #expect(
            messages.contains("own") && !messages.contains("0") && !messages.contains("1") && messages.contains("2"))
    }
}
