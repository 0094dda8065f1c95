import GRDB

/// The former URIs of resources and their present ones.
struct AliasTable {
    let context: StoreContext

    /// Resolves a URI that was replaced: the temporary URI of a created resource, a URI below it, or the URI of a `PUT`
    /// that the backend answered with another place. Other URIs are returned unchanged.
    ///
    /// A URI of the backend can later name another resource. So it leads to the moved resource only while that one is
    /// cached and no other resource is stored at the URI itself.
    func located(_ uri: ResourceURI, owner: String) throws -> ResourceURI {
        for name in uri.lineage where name.isLocal || name.path == uri.path {
            let place = try String.fetchOne(
                context.db.cachedStatement(
                    sql: """
                        SELECT alias.uri FROM alias WHERE alias.owner = ?1 AND alias.local_uri = ?2 AND (?3 OR (
                            EXISTS (SELECT 1 FROM resource WHERE resource.owner = ?1 AND resource.uri = alias.uri)
                            AND NOT EXISTS (SELECT 1 FROM resource WHERE resource.owner = ?1 AND resource.uri = ?2)))
                        """), arguments: [owner, name.path, name.isLocal])
            if let place {
                return try located(ResourceURI(place + uri.description.dropFirst(name.path.count)), owner: owner)
            }
        }
        return uri
    }

    /// Stores that a former URI leads to another one.
    func add(_ former: String, leadsTo uri: String, owner: String) throws {
        try context.db.execute(sql: "INSERT OR REPLACE INTO alias VALUES (?, ?, ?)", arguments: [owner, former, uri])
    }
}
