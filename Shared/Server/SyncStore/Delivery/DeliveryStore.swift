package import PostgreSQL
package import SyncModel

/// The store operations of delivery. PostgreSQL is the only real store; the simulation has one in memory, and both pass
/// the same contract tests.
///
/// One call is one round trip. Every part of it is a transaction of its own, in the order given, and sees the commits
/// of the parts before it. A call throws when the outcome of every part is unknown; `outcomeUnknown` says that it may
/// have been executed.
package protocol DeliveryStore {
    /// Stores a batch in one transaction, then finds the connected sessions to notify.
    ///
    /// - Returns: one answer per push, in order, nil where no enabled instance has an online configuration for it; and
    ///   the sessions, by the push's place, which may be unknown where the answers are not.
    func append(
        _ pushes: [OplogStore.Append]
    ) throws(PostgresError) -> (
        answers: [OplogStore.Appended?], presence: Result<[DeviceSessionStore.Presence], PostgresError>
    )

    /// The channels that another transaction holds locked now.
    func lockedChannels(of channels: Set<ChannelAddress>) throws(PostgresError) -> Set<ChannelAddress>

    /// The leases on record.
    func leaseRecord() throws(PostgresError) -> LeaseRecord

    /// Changes the lease record.
    func change(_ changes: [LeaseRecord.Change]) throws(PostgresError)

    /// Executes commands of gateways about leases and sessions.
    func perform(_ commands: [SessionStoreCommand]) throws(PostgresError) -> [Result<
        SessionStoreAnswer, PostgresError
    >]

    /// Reads pages; each head is read before its page.
    func pages(_ reads: [PageRead]) throws(PostgresError) -> [Result<ChannelPage, PostgresError>]

    /// The last valid, stored oplogs between two positions, newest first: the candidates of a threshold.
    func newest(
        of channelID: Int64, after: OplogID, below: OplogID, limit: Int
    ) throws(PostgresError) -> [OplogStore.ValidOplog]

    /// Records that the outcome of non-persistent pushes is known.
    func recordOutcomes(of pushes: [OplogStore.LivePush]) throws(PostgresError)

    /// Records resends and raises sync points.
    func record(
        _ resends: [SyncPointStore.Resend], _ advances: [SyncPointStore.Advance]
    ) throws(PostgresError)
}

/// A page to read.
package struct PageRead: Sendable {
    package var channelID: Int64
    /// The position of the reader: tombstones are read above it.
    package var after: OplogID
    /// Oplogs are read above this id.
    package var start: OplogID
    package var limit: Int
    /// For a single-device channel: the page is read only while this device is the owner.
    package var owner: DeviceID?

    package init(channelID: Int64, after: OplogID, start: OplogID, limit: Int, owner: DeviceID?) {
        self.channelID = channelID
        self.after = after
        self.start = start
        self.limit = limit
        self.owner = owner
    }
}

/// One command of a gateway about leases and sessions.
package enum SessionStoreCommand: Sendable {
    case renewLease(gatewayID: String, epoch: Int64, controlVersion: Int64, sessions: Int)
    /// Registers a connection, then reads the session's initial state; the digest names the user session.
    case open(DeviceSessionStore.Registration, sessionDigest: [UInt8])
    case close(instanceID: InstanceID, deviceID: DeviceID, connectionEpoch: Int64)
    case update(
        instanceID: InstanceID, deviceID: DeviceID, connectionEpoch: Int64, number: UInt64, isForeground: Bool,
        verdictMilliseconds: Int64)
    /// Finds channels with oplogs that were committed since a snapshot.
    case sweep(gatewayID: String, since: String)
    case finishReread(Int64)
    /// Stores parameter values of a user.
    case storeParameters([DeviceParameter], of: UserID, in: InstanceID)
}

/// A page as the store returns it.
package struct ChannelPage: Sendable {
    /// The head of the channel, read before the rest; nil: another device owns the user.
    package var head: OplogID?
    /// Above the start. Non-persistent oplogs have no payload here; their notice may still arrive.
    package var entries: [Oplog]
    /// Above the reader's position, up to the start.
    package var tombstones: [Oplog]
    /// The database's clock.
    package var databaseTime: WallTime

    package init(head: OplogID?, entries: [Oplog], tombstones: [Oplog], databaseTime: WallTime) {
        self.head = head
        self.entries = entries
        self.tombstones = tombstones
        self.databaseTime = databaseTime
    }
}
