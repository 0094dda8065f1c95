/// A query of rows of a Swift type: `RecordQuery(Incident.self).where(\.status == "open").sort(by: \.title)`.
public struct RecordQuery<Record: EntityRecord>: Sendable, Hashable {
    /// The query with attributes by name.
    public private(set) var query: EntityQuery

    /// Makes a query for all rows of a type. The methods below return a narrower query.
    public init(_: Record.Type) { query = EntityQuery(Record.entityType.name) }

    /// Adds a condition.
    public func `where`(_ condition: RecordCondition<Record>) -> RecordQuery {
        changed { $0.where(condition.condition) }
    }

    /// Adds a join: only rows with related rows remain. `RecordCondition(_:)` tests the joined rows by
    /// `alias.attribute`.
    public func join(_ relationship: String, as alias: String, of base: String? = nil) -> RecordQuery {
        changed { $0.join(relationship, as: alias, of: base) }
    }

    /// Adds a sort order, less significant than the earlier ones.
    public func sort(by path: PartialKeyPath<Record>, descending: Bool = false) -> RecordQuery {
        changed { $0.sort(by: RecordCondition<Record>.attribute(path), descending: descending) }
    }

    /// Selects a page of the rows.
    public func page(skip: Int = 0, take: Int? = nil) -> RecordQuery { changed { $0.page(skip: skip, take: take) } }

    private func changed(_ change: (EntityQuery) -> EntityQuery) -> RecordQuery {
        var changed = self
        changed.query = change(query)
        return changed
    }
}
