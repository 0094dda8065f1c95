package import PostgreSQL

/// The next step after the database has refused a batch.
package enum BatchErrorAction: Hashable, Sendable {
    /// The database cannot store one of the values: halving finds its element.
    case halve
    /// A temporary state of the database was the cause and nothing was stored: the whole batch can be repeated.
    case repeatWhole
    /// An immediate repeat cannot help, or the batch may have been stored.
    case fail
}

extension PostgresError {
    /// The policy of all services for a batch that failed.
    ///
    /// Only a value is a reason to halve: SQLSTATE classes 22 (data exception), 23 (integrity constraint violation) and
    /// 54 (program limit exceeded, for example a text that is too long for an index). Halving for any other reason
    /// would store later elements before earlier ones that failed.
    package var batchRemedy: BatchErrorAction {
        guard let sqlState else { return .fail }
        if ["22", "23", "54"].contains(sqlState.prefix(2)) { return .halve }
        return mayRetry ? .repeatWhole : .fail
    }
}
