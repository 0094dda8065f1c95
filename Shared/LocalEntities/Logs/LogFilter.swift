import GRDB

/// Which log records are meant; what is nil does not matter.
public struct LogFilter: Sendable, Hashable {
    /// The entity type's name.
    public var component: String?
    /// The entity's key, as oplogs write it.
    public var entityKey: String?
    /// This level and what is more serious.
    public var level: LogLevel?
    /// One record.
    public var messageID: String?
    /// Written by this device, and not on their way.
    var isOwnUnsent = false

    /// A filter; without arguments, all records.
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

    /// The words of a WHERE; every value is an argument.
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
