/// Log records (ENT6).
extension EntityStore {
    /// Stores a log record of this device.
    ///
    /// - Throws: `EntityError.persistence`.
    public func newLogRecord(
        level: LogLevel, message: String, code: Int = 200, component: String = "", entityKey: String = "",
        operation: String = ""
    ) throws(EntityError) -> LogRecord {
        try write("writing a log record") { transaction in
            let record = LogRecord(
                messageID: RandomID.make(), component: component, entityKey: entityKey, code: code, level: level,
                message: message, operation: operation, requestID: "", timestamp: transaction.context.clock(),
                isOwn: true)
            try transaction.logs.add(record)
            return record
        }
    }

    /// Submits the records that this device has written, as operations of the component `LogRecord`.
    ///
    /// - Throws: as `submitPending`.
    public func submitLogRecords() async throws(EntityError) {
        try write("submitting log records") { try $0.logs.submit() }
        try await sender.send()
    }

    /// Returns log records, the newest first.
    ///
    /// - Parameters:
    ///   - filter: selects records; by default all.
    ///   - limit: the largest number of records; nil: all, at most 10,000.
    /// - Throws: `EntityError.persistence`.
    public func logRecords(_ filter: LogFilter = LogFilter(), limit: Int? = nil) throws(EntityError) -> [LogRecord] {
        try read("reading log records") { try $0.logs.records(filter, limit: limit) }
    }

    /// Whether there is a matching record.
    ///
    /// - Throws: `EntityError.persistence`.
    public func hasLogRecords(_ filter: LogFilter = LogFilter()) throws(EntityError) -> Bool {
        try !logRecords(filter, limit: 1).isEmpty
    }

    /// Deletes log records, except those in flight.
    ///
    /// - Throws: `EntityError.persistence`.
    public func deleteLogRecords(_ filter: LogFilter) throws(EntityError) {
        try write("deleting log records") { try $0.logs.delete(filter) }
    }
}
