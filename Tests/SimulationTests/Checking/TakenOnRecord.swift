import SyncModel

/// The pushes that MQTT clients have received, and those of them that the service has recorded. The record is the only
/// position of an MQTT client. When a push is recalled before its PUBACK is recorded, the client receives the recall
/// late or never (deploy/manual/MQTT.md).
struct TakenOnRecord {
    private struct Client {
        var taken: [String: OplogID] = [:]
        /// By push: the ids that a PUBACK of this connection may still record.
        var awaited: [String: OplogID] = [:]
        var recorded: [String: OplogID] = [:]

        /// Whether the client received a push on an earlier connection and the service has not recorded it.
        func hasLost(_ push: String) -> Bool {
            taken[push] != nil && awaited[push] == nil && recorded[push] == nil
        }
    }

    private var clients: [String: Client] = [:]

    /// A client reconnects. A PUBACK that is not recorded by now counts as lost.
    ///
    /// - Returns: the pushes that the client received and the service has not recorded.
    mutating func connects(_ deviceID: String) -> [String] {
        clients[deviceID, default: Client()].awaited = [:]
        guard let client = clients[deviceID] else { return [] }
        return client.taken.keys.filter { client.recorded[$0] == nil }.sorted()
    }

    /// A client received a push, perhaps again.
    mutating func received(_ push: String, _ id: OplogID, on deviceID: String) {
        clients[deviceID, default: Client()].taken[push] = id
        clients[deviceID]?.awaited[push] = id
    }

    /// The position of a client rises.
    ///
    /// - Parameter counts: whether a push is in that channel and was not recalled. A position above a recalled push
    ///   does not show that the client has the push.
    mutating func advanced(_ deviceID: String, upto: OplogID, counts: (String) -> Bool) {
        for (push, id) in clients[deviceID]?.awaited ?? [:] where id <= upto && counts(push) {
            clients[deviceID]?.awaited[push] = nil
            clients[deviceID]?.recorded[push] = id
        }
    }

    /// A failover may have lost positions.
    ///
    /// - Parameter position: the position of a client in the channel of a push after the failover.
    mutating func failedOver(_ position: (_ push: String, _ deviceID: String) -> OplogID) {
        for (deviceID, client) in clients {
            clients[deviceID]?.recorded = client.recorded.filter { $1 <= position($0, deviceID) }
        }
    }

    /// The clients that received a push on an earlier connection, without a record.
    func losers(of push: String) -> [String] {
        clients.filter { $0.value.hasLost(push) }.keys.sorted()
    }

    /// The pushes with this id that a client received on earlier connections, without a record.
    func lost(_ id: OplogID, by deviceID: String) -> [String] {
        guard let client = clients[deviceID] else { return [] }
        return client.taken.filter { $0.value == id && client.hasLost($0.key) }.keys.sorted()
    }
}
