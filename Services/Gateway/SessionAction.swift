import DeviceProtocol
import SyncModel

/// What a session wants done; performed in order by its connection.
enum SessionAction {
    /// One channel's batch for the next push frame.
    case push(Mss_Device_V1_ChannelBatch, handedOut: [OplogID], channelID: Int64)
    /// Any other frame.
    case send(Mss_Device_V1_Packet)
    /// Listen for notices of these targets, and of no others.
    case listen([TargetAddress])
    /// Register the session, or announce it again; the answer comes back with the bind it was asked for.
    case open(SessionIdentity, connectionEpoch: Int64, takesOwnership: Bool, verdictFor: Duration)
    /// Note foreground state and verdict.
    case update(SessionIdentity, connectionEpoch: Int64, verdictFor: Duration)
    /// Read a page.
    case fetch(channelID: Int64, after: OplogID, newest: Int, traits: DeviceTraits, onlyOwner: DeviceID?)
    /// Ask the tenant; the answer comes back with the bind it was asked for.
    case validate(instanceID: InstanceID, userID: UserID, sessionID: String, bindNumber: UInt32)
    /// Record a sync point.
    case record(channelID: Int64, deviceID: DeviceID, storeID: StoreID?, upto: OplogID)
    /// Make confirmations durable, then answer the report.
    case confirm(reportID: UInt64, deviceID: DeviceID, oplogs: [Int64: [Int64]])
    /// Tell the device why and close.
    case close(CloseCode, String)
}

/// Who is on the other side of a connection.
struct SessionIdentity: Sendable {
    var instanceID: InstanceID
    var deviceID: DeviceID
    var storeID: StoreID
    var traits: DeviceTraits
    var isForeground: Bool
    /// Nil: no user bound.
    var userID: UserID?
    var sessionID: String
    /// Rises with every bind of the connection; 0 before the first.
    var bindNumber: UInt32

    /// What the session listens for.
    var targets: [TargetAddress] {
        var targets = [
            TargetAddress(instanceID: instanceID, kind: .device, target: deviceID.text),
            TargetAddress(instanceID: instanceID, kind: .globalDevice, target: ""),
        ]
        if let userID {
            targets.append(TargetAddress(instanceID: instanceID, kind: .user, target: userID.text))
            targets.append(TargetAddress(instanceID: instanceID, kind: .globalUser, target: ""))
        }
        return targets
    }
}
