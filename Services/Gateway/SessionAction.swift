import Credentials
import DeviceProtocol
import SyncModel

/// What a session wants done; performed in order by its connection.
enum SessionAction {
    /// One channel's batch for the next push frame, and which of it are pushes: a tombstone is none.
    case push(Mss_Device_V1_ChannelBatch, handedOut: [OplogID], channelID: Int64)
    /// Any other frame, behind the batches before it.
    case send(Mss_Device_V1_Packet)
    /// The answer to a request: no batch waits for it, and it for none.
    case answer(Mss_Device_V1_Packet)
    /// Use up the nonce of the Connect; the answer comes back.
    case claim(NonceClaim)
    /// Listen for notices of these targets, and of no others.
    case listen([TargetAddress])
    /// Register the session, or announce it again; the answer comes back with the bind it was asked for.
    case open(
        SessionIdentity, connectionEpoch: Int64, opensBind: Bool, claim: Ownership.Claim?, verdictFor: Duration)
    /// Note foreground state and verdict.
    case update(SessionIdentity, connectionEpoch: Int64, verdictFor: Duration)
    /// Read a page.
    case fetch(PageRequest)
    /// Read a page of history.
    case readHistory(HistoryRead)
    /// Read where channels stand.
    case readSummary(SummaryRead)
    /// Ask the tenant; the answer comes back with the bind it was asked for.
    case validate(instanceID: InstanceID, userID: UserID, sessionID: String, bindNumber: UInt32)
    /// Hand operations to the relay; the answer comes back with their number.
    case submit(OperationSubmission)
    /// Have values kept for the user; the answer comes back with the number.
    case keepParameters([DeviceParameter], of: UserID, number: UInt32)
    /// Record a sync point.
    ///
    /// `acknowledged` is the part of it that the device itself acknowledged or claimed.
    case record(channelID: Int64, receiver: SyncReceiver, acknowledged: OplogID, upto: OplogID)
    /// Make what the app did durable, then answer the report.
    case confirm(ConfirmedReport)
    /// Rules have passed these over for the device.
    case skipped([OplogID], because: SkipReason, channelID: Int64)
    /// A threshold has passed over a range.
    case discarded(channelID: Int64, after: OplogID, upto: OplogID)
    /// Record how often a batch of a simple device goes out again; it does when that is answered.
    case recordResend(channelID: Int64, receiver: SyncReceiver, oplogID: OplogID, repeats: Int)
    /// A simple device did not take these however often they came.
    case gaveUp([OplogID], attempts: Int, channelID: Int64)
    /// The device has a re-read on its disk.
    case finishReread(Int64)
    /// Tell the device why and close.
    case close(CloseCode, String)
}

/// Whose sync point of a channel a session moves (spec §1, Receiver).
struct SyncReceiver: Hashable, Sendable {
    var deviceID: DeviceID
    /// Nil where the channel has one sync point for its user or device.
    var storeID: StoreID?
    /// Only of global data for users: each user of a shared device receives it.
    var userID: UserID?
}

/// A page of a channel that a session wants to read.
struct PageRequest: Hashable, Sendable {
    var channelID: Int64
    /// Everybody's channel: its newest entries are read once for all sessions.
    var isGlobal: Bool
    var after: OplogID
    /// The channel reaches at least this far.
    var head: OplogID
    /// Of a backlog only the newest so many that are valid and match; 0: all.
    var newest: Int
    /// The channel's head when the backlog opened: `newest` counts up to here, and what came later is no backlog.
    var newestUpto: OplogID
    var traits: DeviceTraits
    /// Of a single-device channel: only while this device is the owner.
    var onlyOwner: DeviceID?
    /// `newest` counts what passes these; nil: everything does.
    var filters: FilterHistory?
    /// The bind that the session had when it asked.
    var bindNumber: UInt32 = 0
}

/// A page of history that a device asks for.
struct HistoryRead: Hashable, Sendable {
    /// Names the request to the session.
    var id: UInt64
    var channelID: Int64
    /// Both ends are open; before 0: no end.
    var after: OplogID
    var before: OplogID
    var count: Int
    var isOldestFirst: Bool
    var traits: DeviceTraits
    /// Of a single-device channel: only while this device is the owner.
    var onlyOwner: DeviceID?
    /// Only what passes it.
    var filter = ResolvedFilter.everything
}

/// Channels whose standing a device asks for.
struct SummaryRead: Hashable, Sendable {
    /// One of the channels.
    struct Channel: Hashable, Sendable {
        var channelID: Int64
        var receiver: SyncReceiver
        /// The device has acknowledged this; the record may be a moment behind.
        var stored: OplogID
        /// Of a single-device channel: only while this device is the owner.
        var onlyOwner: DeviceID?
        /// The newest one is looked for among what passes it.
        var filter = ResolvedFilter.everything
    }

    /// Names the request to the session.
    var id: UInt64
    var channels: [Channel]
    var traits: DeviceTraits
}

/// What an app did with oplogs, by channel.
struct ConfirmedReport: Sendable {
    /// An oplog that was given to the app more than once, or is given up.
    struct Resent: Sendable {
        var channelID: Int64
        var oplogID: OplogID
        var attempts: Int
        var isDead: Bool
    }

    /// What the device waits for the answer to; nil: it does not wait.
    var id: UInt64?
    var deviceID: DeviceID
    var userID: UserID?
    var confirmed: [Int64: [Int64]] = [:]
    var resent: [Resent] = []
}

/// Who is on the other side of a connection.
struct SessionIdentity: Sendable {
    var instanceID: InstanceID
    var deviceID: DeviceID
    var storeID: StoreID
    var traits: DeviceTraits
    var isForeground: Bool
    /// It does not tell stored from confirmed (spec D13).
    var isSimple: Bool
    /// The device's own number of the connection; 0: it does not count.
    var connectionNumber: UInt64 = 0
    /// Business types whose data it does not take now.
    var suspended: Set<BizType>
    /// The subscription parameters that it sets.
    var parameters: [DeviceParameter] = []
    /// Business types whose filters its registration asks for.
    var filtered: [BizType] = []
    /// SHA-256 of the secret that it showed; empty: it showed none.
    var secretDigest: [UInt8]
    /// Where it can be woken; nil: it does not say.
    var pushToken: PushToken?
    /// The key that signed its Connect; nil: no signature was needed.
    var signedBy: String?
    /// Nil: no user bound.
    var userID: UserID?
    var sessionID: String
    /// Rises with every bind of the connection; 0 before the first.
    var bindNumber: UInt32

    /// How store and bus name the session: they never see its id.
    var sessionDigest: [UInt8] { SessionDigest.of(sessionID) }

    /// Whether it listens for a target.
    func isTarget(_ address: TargetAddress) -> Bool {
        guard address.instanceID == instanceID else { return false }
        return switch address.kind {
        case .user: userID?.text.isSame(as: address.target) ?? false
        case .device: deviceID.text.isSame(as: address.target)
        case .globalUser: userID != nil
        case .globalDevice: true
        }
    }

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
