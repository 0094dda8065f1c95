package import PostgreSQL

/// What can help a batch that the database did not take.
package enum BatchRemedy: Hashable, Sendable {
    /// The database cannot take a value of it: halving finds the element that has the value.
    case halve
    /// The state of the database was in the way for a moment and nothing was stored: the whole batch can be repeated.
    case repeatWhole
    /// Repeating it at once cannot help, or it may have been stored.
    case fail
}

extension PostgresError {
    /// The one policy of all services for a batch that failed.
    ///
    /// Only values are a reason to halve: SQLSTATE classes 22 (data exception), 23 (integrity constraint violation) and
    /// 54 (program limit exceeded, such as a text that is too long for an index). Halving for any other reason would
    /// store later elements before earlier ones that failed.
    package var batchRemedy: BatchRemedy {
        guard let sqlState else { return .fail }
        if ["22", "23", "54"].contains(sqlState.prefix(2)) { return .halve }
        return mayRetry ? .repeatWhole : .fail
    }
}
