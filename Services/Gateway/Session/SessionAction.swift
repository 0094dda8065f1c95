import Credentials
import DeviceProtocol
import SyncModel

/// An action that a session requests. Its connection performs the actions in order.
enum SessionAction {
    /// A batch of one channel for the next push frame. `handedOut`: its pushes, without tombstones.
    case push(Mss_Device_V1_ChannelBatch, handedOut: [OplogID], channelID: Int64)
    /// Any other frame. It is sent after the batches before it.
    case send(Mss_Device_V1_Packet)
    /// The answer to a request, or a new session state. It is sent at once: batches that wait for others of their frame
    /// continue to wait (D5).
    case answer(Mss_Device_V1_Packet)
    /// Claim the nonce of the Connect. The outcome comes back as an event.
    case claim(NonceClaim)
    /// Listen for notices of these targets only.
    case listen([TargetAddress])
    /// Register the session, for the first time or again. The reply comes back with the bind of the request.
    case open(
        SessionIdentity, connectionEpoch: Int64, opensBind: Bool, claim: Ownership.Claim?, verdictFor: Duration)
    /// Update foreground state and verdict in the store.
    case update(SessionIdentity, connectionEpoch: Int64, verdictFor: Duration)
    /// Read a page.
    case fetch(PageRequest)
    /// Read a page of history.
    case readHistory(HistoryRead)
    /// Read a summary of channels.
    case readSummary(SummaryRead)
    /// Request a verdict. The reply comes back with the bind of the request.
    case validate(instanceID: InstanceID, userID: UserID, sessionID: String, bindNumber: UInt32)
    /// Send operations to the relay. The reply comes back with the number of their frame.
    case submit(OperationSubmission)
    /// Store parameter values of the user. The outcome comes back with the number.
    case keepParameters([DeviceParameter], of: UserID, number: UInt32)
    /// Record a sync point.
    ///
    /// `acknowledged` is the part of it that the device itself acknowledged or reported.
    case record(channelID: Int64, receiver: SyncReceiver, acknowledged: OplogID, upto: OplogID)
    /// Store an app's confirmations durably, then answer the report.
    case confirm(ConfirmedReport)
    /// Report skipped oplogs.
    case skipped([OplogID], because: SkipReason, channelID: Int64)
    /// Report a range that a threshold has discarded.
    case discarded(channelID: Int64, after: OplogID, upto: OplogID)
    /// Store the count of a simple device's resend. The batch is resent when the reply arrives.
    case recordResend(channelID: Int64, receiver: SyncReceiver, oplogID: OplogID, repeats: Int)
    /// Report oplogs that a simple device has not acknowledged after all resends.
    case gaveUp([OplogID], attempts: Int, channelID: Int64)
    /// Report that the device has stored a re-read.
    case finishReread(Int64)
    /// Send the reason and close.
    case close(CloseCode, String)
}

/// The receiver whose sync point a session moves (W7).
struct SyncReceiver: Hashable, Sendable {
    var deviceID: DeviceID
    /// The value is nil where the channel has one sync point for its user or device.
    var storeID: StoreID?
    /// Only for global user data: each user of a shared device has a sync point.
    var userID: UserID?
}

/// A request for a page of a channel.
struct PageRequest: Hashable, Sendable {
    var channelID: Int64
    /// A global channel: its newest entries are read once for all sessions.
    var isGlobal: Bool
    var after: OplogID
    /// The channel has at least this head.
    var head: OplogID
    /// Only the newest valid and matching entries of a backlog, by the threshold; 0: all.
    var newest: Int
    /// The head when the backlog opened. `newest` counts only ids up to here.
    var newestUpto: OplogID
    var traits: DeviceTraits
    /// For a single-device channel: the device that must be the owner.
    var onlyOwner: DeviceID?
    /// `newest` counts only entries that pass these filters; nil: no filter.
    var filters: FilterHistory?
    /// The bind of the session when it sent the request.
    var bindNumber: UInt32 = 0
}

/// A request for a page of history.
struct HistoryRead: Hashable, Sendable {
    /// The id of the request in its session.
    var id: UInt64
    var channelID: Int64
    /// Both ends are exclusive; `before` 0: no end.
    var after: OplogID
    var before: OplogID
    var count: Int
    var isOldestFirst: Bool
    var traits: DeviceTraits
    /// For a single-device channel: the device that must be the owner.
    var onlyOwner: DeviceID?
    /// Only entries that pass this filter.
    var filter = ResolvedFilter.everything
    /// Only entries of this conversation; empty: all.
    var conversation = ""
}

/// A request for a summary of channels, or of the conversations of one.
struct SummaryRead: Hashable, Sendable {
    /// One of the channels.
    struct Channel: Hashable, Sendable {
        var channelID: Int64
        var receiver: SyncReceiver
        /// The position that the device has acknowledged. The server's sync point may be older.
        var stored: OplogID
        /// For a single-device channel: the device that must be the owner.
        var onlyOwner: DeviceID?
        /// The newest oplog is chosen among those that pass this filter.
        var filter = ResolvedFilter.everything
    }

    /// The conversations that are requested.
    struct Conversations: Hashable, Sendable {
        /// Only those after this one; empty: from the first.
        var after: String
        /// The largest number of conversations in the page.
        var count: Int
    }

    /// The id of the request in its session.
    var id: UInt64
    var channels: [Channel]
    var traits: DeviceTraits
    /// Set: the conversations of the one channel.
    var conversations: Conversations?
}

/// An app's confirmations and resends, by channel.
struct ConfirmedReport: Sendable {
    /// An oplog that was handed out to the app several times, or that is dead.
    struct Resent: Sendable {
        var channelID: Int64
        var oplogID: OplogID
        var attempts: Int
        var isDead: Bool
    }

    /// The id that the answer carries; nil: no answer.
    var id: UInt64?
    var deviceID: DeviceID
    var userID: UserID?
    var confirmed: [Int64: [Int64]] = [:]
    var resent: [Resent] = []
}

/// The identity of the device and of the user on a connection.
struct SessionIdentity: Sendable {
    /// The parts of a Connect that only the registration needs.
    struct Connect: Sendable {
        /// The device's own number of the connection; 0: unknown.
        var connectionNumber: UInt64 = 0
        /// SHA-256 of the device's secret; empty: it sent none.
        var secretDigest: [UInt8] = []
        /// The token for wake-up pushes; nil: not given.
        var pushToken: PushToken?
        /// The key that signed it; nil: no signature was needed.
        var signedBy: String?
    }

    /// The data that the device receives.
    struct Subscriptions: Sendable {
        /// Sync IDs that the device has suspended.
        var suspended: Set<BizType> = []
        /// The subscription parameters that the device sets.
        var parameters: [DeviceParameter] = []
        /// Sync IDs whose filters the registration requests.
        var filtered: [BizType] = []
    }

    var instanceID: InstanceID
    var deviceID: DeviceID
    var storeID: StoreID
    var traits: DeviceTraits
    var isForeground: Bool
    /// The device does not tell stored from confirmed (D13).
    var isSimple: Bool
    /// The parts of the Connect that only the registration needs.
    var connect: Connect
    var subscriptions: Subscriptions
    /// A nil value means: no user bound.
    var userID: UserID?
    var sessionID: String
    /// Rises with every bind of the connection; 0 before the first.
    var bindNumber: UInt32

    /// The digest by which store and bus name the user session. They never receive its id.
    var sessionDigest: [UInt8] { SessionDigest.of(sessionID) }

    /// Whether the session listens for a target.
    func isTarget(_ address: TargetAddress) -> Bool {
        guard address.instanceID == instanceID else { return false }
        return switch address.kind {
        case .user: userID?.text.isSame(as: address.target) ?? false
        case .device: deviceID.text.isSame(as: address.target)
        case .globalUser: userID != nil
        case .globalDevice: true
        }
    }

    /// The targets that the session listens for.
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
