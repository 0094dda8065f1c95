import GRDB

/// Selects log records. A nil member selects all records.
public struct LogFilter: Sendable, Hashable {
    /// The entity type's name.
    public var component: String?
    /// The row's key in the form of oplogs.
    public var entityKey: String?
    /// This level and more serious levels.
    public var level: LogLevel?
    /// The id of one record.
    public var messageID: String?
    /// Only records that this device has written and that are not in flight.
    var isOwnUnsent = false

    /// Makes a filter; without arguments it selects all records.
    public init(
        component: String? = nil, entityKey: String? = nil, level: LogLevel? = nil, messageID: String? = nil
    ) {
        self.component = component
        self.entityKey = entityKey
        self.level = level
        self.messageID = messageID
    }

    static var ownUnsent: LogFilter {
        var filter = LogFilter()
        filter.isOwnUnsent = true
        return filter
    }

    /// The condition for SQL; every value is an argument.
    var condition: String {
        var parts = ["1"]
        if component != nil { parts.append("component = ?") }
        if entityKey != nil { parts.append("entity_key = ?") }
        if messageID != nil { parts.append("message_id = ?") }
        if let level {
            let names = LogLevel.allCases.filter { $0 <= level }.map { "'\($0.rawValue)'" }
            parts.append("level IN (\(names.joined(separator: ", ")))")
        }
        if isOwnUnsent { parts.append("is_own AND submission_id IS NULL") }
        return parts.joined(separator: " AND ")
    }

    var arguments: StatementArguments {
        StatementArguments([component, entityKey, messageID].compactMap { $0 })
    }
}
