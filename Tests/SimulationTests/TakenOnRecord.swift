import SyncModel

/// Which of the pushes that MQTT clients have taken the service has on record. It is their only position: of a push
/// whose PUBACK was not recorded before it was recalled, they are told nothing (deploy/README.md, MQTT).
struct TakenOnRecord {
    private struct Client {
        var taken: [String: OplogID] = [:]
        /// By push: ids that a PUBACK of this connection may still put on record.
        var awaited: [String: OplogID] = [:]
        var recorded: [String: OplogID] = [:]
    }

    private var clients: [String: Client] = [:]

    /// A client connects anew: a PUBACK that is not on record by now counts as none.
    ///
    /// - Returns: the pushes that it has taken without a record.
    mutating func connects(_ deviceID: String) -> [String] {
        clients[deviceID, default: Client()].awaited = [:]
        guard let client = clients[deviceID] else { return [] }
        return client.taken.keys.filter { client.recorded[$0] == nil }.sorted()
    }

    /// A client has taken a push, perhaps again.
    mutating func took(_ push: String, _ id: OplogID, on deviceID: String) {
        clients[deviceID, default: Client()].taken[push] = id
        clients[deviceID]?.awaited[push] = id
    }

    /// The position of a client moves.
    ///
    /// - Parameter counts: whether a push is of that channel and still there: of one that was recalled before, a
    ///   position says nothing.
    mutating func advanced(_ deviceID: String, upto: OplogID, counts: (String) -> Bool) {
        for (push, id) in clients[deviceID]?.awaited ?? [:] where id <= upto && counts(push) {
            clients[deviceID]?.awaited[push] = nil
            clients[deviceID]?.recorded[push] = id
        }
    }

    /// A failover may have lost positions.
    ///
    /// - Parameter position: of a client in the channel of a push, after it.
    mutating func failedOver(_ position: (_ push: String, _ deviceID: String) -> OplogID) {
        for (deviceID, client) in clients {
            clients[deviceID]?.recorded = client.recorded.filter { $1 <= position($0, deviceID) }
        }
    }

    /// The clients that have taken a push on an earlier connection, without a record.
    func losers(of push: String) -> [String] {
        clients.filter { _, client in
            client.taken[push] != nil && client.awaited[push] == nil && client.recorded[push] == nil
        }.keys.sorted()
    }

    /// The pushes with this id that a client has taken on earlier connections, without a record.
    func lost(_ id: OplogID, by deviceID: String) -> [String] {
        guard let client = clients[deviceID] else { return [] }
        return client.taken.filter { push, taken in
            taken == id && client.awaited[push] == nil && client.recorded[push] == nil
        }.keys.sorted()
    }
}
