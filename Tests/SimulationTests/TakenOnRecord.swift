import SyncModel

/// The pushes that MQTT clients have taken, and the part of them that the service has on record. The record is the only
/// position of a client: when a push is recalled before its PUBACK is on record, the client hears of the recall late or
/// never (deploy/README.md, MQTT).
struct TakenOnRecord {
    private struct Client {
        var taken: [String: OplogID] = [:]
        /// By push: ids that a PUBACK of this connection may still put on record.
        var awaited: [String: OplogID] = [:]
        var recorded: [String: OplogID] = [:]

        /// Whether the client has taken a push on an earlier connection, without a record.
        func hasLost(_ push: String) -> Bool {
            taken[push] != nil && awaited[push] == nil && recorded[push] == nil
        }
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
    /// - Parameter counts: whether a push is in that channel and was not recalled. A position above a recalled push does
    ///   not show that the client has the push.
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
        clients.filter { $0.value.hasLost(push) }.keys.sorted()
    }

    /// The pushes with this id that a client has taken on earlier connections, without a record.
    func lost(_ id: OplogID, by deviceID: String) -> [String] {
        guard let client = clients[deviceID] else { return [] }
        return client.taken.filter { $0.value == id && client.hasLost($0.key) }.keys.sorted()
    }
}
