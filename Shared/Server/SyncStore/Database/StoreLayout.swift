import Crypto
package import SyncModel

/// The stores of a database: schemas that share the channels by a hash of (instance, target) (Design.md#stores). Their
/// number is fixed at the first migration.
package struct StoreLayout: Sendable, Hashable {
    /// The possible numbers of stores. A query of all stores locks about 50 relations in each, so with more, a few of
    /// them at once can fill the server's lock table with its default settings.
    package static let counts = 1...8
    /// The layout with one store.
    package static let single = StoreLayout(count: 1)

    package let count: Int

    /// - Parameter count: one of `counts`.
    package init(count: Int) {
        precondition(Self.counts.contains(count), "the number of stores is between 1 and 8")
        self.count = count
    }

    /// Every store, in order.
    package var stores: [StoreSchema] { (0..<count).map(store) }

    /// The number of the store with the data of a target, from 0 on; the same as `is_of_store` in m0014_stores.
    package func number(of instanceID: InstanceID, target: String) -> Int {
        guard count > 1 else { return 0 }
        let hash = SHA256.hash(data: Array("\(instanceID.text)/\(target)".utf8)).prefix(4)
        return hash.reduce(0) { $0 << 8 | Int($1) } % count
    }

    /// The number of the store with a channel or a re-read; each id names its store.
    package func number(ofID id: Int64) -> Int { count > 1 ? Int(id.magnitude % UInt64(count)) : 0 }

    /// The store with the channels of a target.
    package func store(of target: TargetAddress) -> StoreSchema {
        store(number(of: target.instanceID, target: target.target))
    }

    /// The store with the global channels and the roll-outs of an instance.
    package func globalStore(of instanceID: InstanceID) -> StoreSchema { store(number(of: instanceID, target: "")) }

    /// The store with a user's channels and parameters.
    package func store(of userID: UserID, in instanceID: InstanceID) -> StoreSchema {
        store(number(of: instanceID, target: userID.text))
    }

    /// The stores with the channels of a session, in order, each once.
    package func stores(of deviceID: DeviceID, _ userID: UserID?, in instanceID: InstanceID) -> [StoreSchema] {
        let targets = [deviceID.text, userID?.text ?? "", ""]
        return Set(targets.map { number(of: instanceID, target: $0) }).sorted().map(store)
    }

    /// The store with a channel or a re-read.
    package func store(ofID id: Int64) -> StoreSchema { store(number(ofID: id)) }

    /// Elements by their store, in the order of the stores.
    func grouped<Element>(_ elements: [Element], by id: (Element) -> Int64) -> [(StoreSchema, [Element])] {
        guard count > 1 else { return [(store(0), elements)] }
        return Dictionary(grouping: elements) { number(ofID: id($0)) }.sorted { $0.key < $1.key }.map { number, own in
            (store(number), own)
        }
    }

    private func store(_ number: Int) -> StoreSchema {
        count == 1 ? .every : StoreSchema(schema: "delivery_\(number)", prefix: "delivery_\(number).")
    }
}

/// The schema of one store, as statements name its tables and functions.
package struct StoreSchema: Sendable, Hashable {
    /// No single store: the search path decides. With one store it finds the tables, otherwise the views of all stores,
    /// which can only be read.
    package static let every = StoreSchema(schema: "delivery", prefix: "")

    let schema: String
    /// Stands before the name of a table or function.
    let prefix: String
}
