/// A query of an entity store (ENT5). A pure value; the store compiles it when it executes it.
public struct EntityQuery: Sendable, Hashable {
    /// An inner join over a declared relationship.
    public struct Join: Sendable, Hashable {
        /// The name of the relationship: from a parent to its children, or the inverse name from a child to its parent.
        public var relationship: String
        /// The alias of the joined rows; their attributes are `alias.name`.
        public var alias: String
        /// The start of the join: the alias of an earlier join; nil: the query's own type.
        public var base: String?
    }

    /// A column of `executeQuery`.
    public enum Column: Sendable, Hashable {
        case attribute(String)
        case count
        /// The sum of a numeric attribute.
        case sum(String)
        case average(String)
        case minimum(String)
        case maximum(String)

        /// The name of the column in the result and in `sort`.
        public var name: String {
            switch self {
            case .attribute(let attribute): attribute
            case .count: "count"
            case .sum(let attribute): "sum(\(attribute))"
            case .average(let attribute): "average(\(attribute))"
            case .minimum(let attribute): "minimum(\(attribute))"
            case .maximum(let attribute): "maximum(\(attribute))"
            }
        }
    }

    /// A sort order. Null comes first, or last in descending order.
    public struct SortOrder: Sendable, Hashable {
        public var attribute: String
        public var isDescending: Bool
    }

    /// The entity type's name.
    public var typeName: String
    /// The joins; a later join can start at an earlier one.
    public var joins: [Join] = []
    /// The condition of the rows; nil: all rows.
    public var condition: EntityCondition?
    /// The columns of `executeQuery`; the `find` calls return whole rows.
    public var columns: [Column] = []
    /// The groups of `executeQuery`: one result row for each combination of these attributes.
    public var groups: [String] = []
    /// The sort orders, the most significant first. Equal rows have the order of their insertion.
    public var sorts: [SortOrder] = []
    /// The number of rows to skip; at least 0.
    public var skip = 0
    /// The largest number of rows; nil: all.
    public var take: Int?
    /// For `executeQuery`: removes repeated rows.
    public var isDistinct = false
    /// Whether the query also finds rows that are deleted here and not yet on the server.
    public var includesDeleted = false

    /// Makes a query for all rows of a type. The methods below return a narrower query.
    public init(_ typeName: String) { self.typeName = typeName }

    /// Adds a join: only rows with related rows remain. The `find` calls return each row once.
    public func join(_ relationship: String, as alias: String, of base: String? = nil) -> EntityQuery {
        changed { $0.joins.append(Join(relationship: relationship, alias: alias, base: base)) }
    }

    /// Adds a condition.
    public func `where`(_ condition: EntityCondition) -> EntityQuery {
        changed { $0.condition = $0.condition.map { .and([$0, condition]) } ?? condition }
    }

    /// Adds columns.
    public func select(_ columns: Column...) -> EntityQuery { changed { $0.columns += columns } }

    /// Adds groups.
    public func group(by attributes: String...) -> EntityQuery { changed { $0.groups += attributes } }

    /// Adds a sort order, less significant than the earlier ones.
    public func sort(by attribute: String, descending: Bool = false) -> EntityQuery {
        changed { $0.sorts.append(SortOrder(attribute: attribute, isDescending: descending)) }
    }

    /// Selects a page of the rows.
    public func page(skip: Int = 0, take: Int? = nil) -> EntityQuery {
        changed {
            $0.skip = skip
            $0.take = take
        }
    }

    private func changed(_ change: (inout EntityQuery) -> Void) -> EntityQuery {
        var query = self
        change(&query)
        return query
    }
}
