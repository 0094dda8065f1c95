/// Log records (spec, two-way §2).
extension EntityStore {
    /// Writes a record of this device's own.
    ///
    /// - Throws: `EntityError.persistence`.
    public func newLogRecord(
        level: LogLevel, message: String, code: Int = 200, component: String = "", entityKey: String = "",
        operation: String = ""
    ) throws(EntityError) -> LogRecord {
        try write("writing a log record") { transaction in
            try transaction.step("writing a log record") {
                let record = LogRecord(
                    messageID: RandomID.make(), component: component, entityKey: entityKey, code: code, level: level,
                    message: message, operation: operation, requestID: "", timestamp: transaction.clock(), isOwn: true)
                try transaction.note(record)
                return record
            }
        }
    }

    /// Sends the records that this device has written, in one operation of the component `LogRecord`.
    ///
    /// - Throws: As `submitPending`.
    public func submitLogRecords() async throws(EntityError) {
        try write("submitting log records") { transaction in
            try transaction.step("submitting log records") { try transaction.submitLogRecords() }
        }
        try await send()
    }

    /// Records, newest first.
    ///
    /// - Parameter limit: records at most; nil: all, which are 10,000 at most.
    /// - Throws: `EntityError.persistence`.
    public func logRecords(_ filter: LogFilter = LogFilter(), limit: Int? = nil) throws(EntityError) -> [LogRecord] {
        try read("reading log records") { transaction in
            try transaction.step("reading log records") { try transaction.logRecords(filter, limit: limit) }
        }
    }

    /// Whether there is a record.
    ///
    /// - Throws: `EntityError.persistence`.
    public func hasLogRecords(_ filter: LogFilter = LogFilter()) throws(EntityError) -> Bool {
        try !logRecords(filter, limit: 1).isEmpty
    }

    /// Forgets records, but for those that are on their way.
    ///
    /// - Throws: `EntityError.persistence`.
    public func deleteLogRecords(_ filter: LogFilter) throws(EntityError) {
        try write("deleting log records") { transaction in
            try transaction.step("deleting log records") { try transaction.deleteLogRecords(filter) }
        }
    }
}
