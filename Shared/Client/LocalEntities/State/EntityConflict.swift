/// An edit of a row that has changed on the server since the edit began: three versions of one row (ENT1).
public struct EntityConflict: Sendable, Hashable {
    /// Decides a conflict (`EntityStoreConfiguration.resolveConflict`).
    public typealias Resolver = @Sendable (EntityConflict) throws -> Resolution

    /// The decision about a conflict.
    public enum Resolution: Sendable, Hashable {
        /// My version replaces theirs as a whole; `merged(preferring:)` keeps what only they changed.
        case keepMine
        /// The edit is dropped.
        case takeTheirs
        /// These attributes become the edit, as a change of their version. A row that I had deleted exists again,
        /// unless this entity is deleted.
        case merged(Entity)
    }

    /// The side whose value counts where both sides changed an attribute.
    public enum Side: Sendable, Hashable { case mine, theirs }

    /// The server's version that the edit is based on; nil: the row was created here.
    public let base: Entity?
    /// The row with the edit; `isDeleted` when it was deleted here.
    public let mine: Entity
    /// The server's version now; nil: the server has deleted the row.
    public let theirs: Entity?

    init(_ row: StoredRow, _ type: EntityType) {
        func version(_ fields: [String: AttributeValue]) -> Entity {
            var version = row
            version.fields = fields
            version.state = .imported(counter: nil)
            return Entity(type: type, row: version)
        }
        base = row.base.map(version)
        mine = Entity(type: type, row: row)
        theirs = row.original.map(version)
    }

    /// The attributes that differ between the base and my version; all without a base.
    public var changedByMe: Set<String> { changed(mine) }
    /// The attributes that differ between the base and their version; all without a base or when they deleted the row.
    public var changedByThem: Set<String> { changed(theirs) }

    /// Whether both have the same versions of the row, so that a decision about one applies to the other.
    func hasSameVersions(as other: EntityConflict) -> Bool {
        mine.fields == other.mine.fields && mine.isDeleted == other.mine.isDeleted
            && theirs?.fields == other.theirs?.fields
    }

    private func changed(_ version: Entity?) -> Set<String> {
        Set(
            mine.fields.keys.filter { name in
                guard let base, let version else { return true }
                return version.fields[name] != base.fields[name]
            })
    }

    /// My version with the attributes that only they changed. A row that I had deleted: the deletion or their version.
    ///
    /// - Parameter side: whose value counts for an attribute that both changed.
    public func merged(preferring side: Side) -> Entity {
        guard let theirs else { return mine }
        if mine.isDeleted { return side == .mine ? mine : theirs }
        let taken = side == .theirs ? changedByThem : changedByThem.subtracting(changedByMe)
        var fields = mine.fields
        for name in taken { fields[name] = theirs.fields[name] }
        var merged = mine
        merged.setFields(fields)
        return merged
    }
}
