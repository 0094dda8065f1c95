/// Where the objects of a migration or of a function file are.
package enum SchemaScope: Sendable, Hashable {
    /// In the schemas that the service has once.
    case service
    /// In the schema of each store. With one store it is `delivery`.
    case store

    /// The scripts to run for one script of this scope; pure.
    ///
    /// A script of a store names its schema `delivery` at CREATE and DROP. With more than one store, these names become
    /// that of the store, and the store's schema comes first in the search path: everything else is found in it or in
    /// the schemas of the service. `{store}`, `{stores}` and `{store_first_id}` become numbers.
    func scripts(of script: String, for stores: StoreLayout) -> [String] {
        let script = script.replacing("{stores}", with: "\(stores.count)")
        guard self == .store else { return [script] }
        return stores.stores.enumerated().map { number, store in
            let own =
                script.replacing("{store}", with: "\(number)")
                .replacing("{store_first_id}", with: "\(stores.count + number)")
            guard stores.count > 1 else { return own }
            let searchPath = "search_path = \(store.schema), public, delivery"
            return """
                SET LOCAL \(searchPath);
                \(own.replacing("search_path = public, delivery", with: searchPath)
                    .replacing("delivery.", with: "\(store.schema).")
                    .replacing("'delivery'", with: "'\(store.schema)'")
                    .replacing("SCHEMA delivery ", with: "SCHEMA \(store.schema) "));
                SET LOCAL search_path = public, delivery;
                """
        }
    }
}
