/// A question to an entity store (spec, two-way §2): a pure value, compiled when it is asked.
public struct EntityQuery: Sendable, Hashable {
    /// An INNER_JOIN over a relationship.
    public struct Join: Sendable, Hashable {
        /// Of the row that it begins at: a relationship to children, or the inverse name of one to the parent.
        public var relationship: String
        /// By which its attributes are named, `alias.name`.
        public var alias: String
        /// Where it begins: an alias of an earlier join; nil: the query's own type.
        public var base: String?
    }

    /// A column of `executeQuery`.
    public enum Column: Sendable, Hashable {
        case attribute(String)
        case count
        /// Of numbers.
        case sum(String)
        case average(String)
        case minimum(String)
        case maximum(String)

        /// What the column is called in the result, and in `sort`.
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

    /// A column that the rows are sorted by; null comes first, or last when descending.
    public struct SortOrder: Sendable, Hashable {
        public var attribute: String
        public var isDescending: Bool
    }

    /// The entity type's name.
    public var typeName: String
    /// In their order; a later one may begin at an earlier one.
    public var joins: [Join] = []
    /// Nil: every row.
    public var condition: EntityCondition?
    /// Of `executeQuery`; `find` gives whole rows.
    public var columns: [Column] = []
    /// Of `executeQuery`: one row for each that differs in these.
    public var groups: [String] = []
    /// The first counts most; rows that are equal in all come in the order in which they came into the store.
    public var sorts: [SortOrder] = []
    /// Rows to pass over; at least 0.
    public var skip = 0
    /// Rows at most; nil: all.
    public var take: Int?
    /// Of `executeQuery`: equal rows once.
    public var isDistinct = false
    /// Whether rows that are deleted here, and not yet on the server, are found too.
    public var includesDeleted = false

    /// All rows of a type; the other calls give a query that asks for less.
    public init(_ typeName: String) { self.typeName = typeName }

    /// Rows that have related ones; `find` gives each once.
    public func join(_ relationship: String, as alias: String, of base: String? = nil) -> EntityQuery {
        changed { $0.joins.append(Join(relationship: relationship, alias: alias, base: base)) }
    }

    /// Rows that fulfil this too.
    public func `where`(_ condition: EntityCondition) -> EntityQuery {
        changed { $0.condition = $0.condition.map { .and([$0, condition]) } ?? condition }
    }

    /// These columns.
    public func select(_ columns: Column...) -> EntityQuery { changed { $0.columns += columns } }

    /// One row for each that differs in these.
    public func group(by attributes: String...) -> EntityQuery { changed { $0.groups += attributes } }

    /// Sorted by this, where what was said before leaves it open.
    public func sort(by attribute: String, descending: Bool = false) -> EntityQuery {
        changed { $0.sorts.append(SortOrder(attribute: attribute, isDescending: descending)) }
    }

    /// A page of the rows.
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
