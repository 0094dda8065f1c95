package import PostgreSQL
package import SyncModel

/// What delivery asks of the store. PostgreSQL is the one that there is; simulation has another in memory, and both pass
/// the same contract suite.
///
/// One call is one round trip. Every part of it is a transaction of its own, in the order given, and sees what those
/// before it have committed. A call throws when nothing is known of any part; `outcomeUnknown` says that it may have
/// been done.
package protocol DeliveryStore {
    /// Stores a batch in one transaction, then finds who is connected to be told.
    ///
    /// - Returns: one answer per push, in order, nil where no enabled instance has an online configuration for it; and
    ///   the sessions, by the push's place, which may be unknown where the answers are not.
    func append(
        _ pushes: [OplogStore.Append]
    ) throws(PostgresError) -> (
        answers: [OplogStore.Appended?], presence: Result<[DeviceSessionStore.Presence], PostgresError>
    )

    /// Of these channels, those that another transaction holds locked now.
    func lockedChannels(of channels: Set<ChannelAddress>) throws(PostgresError) -> Set<ChannelAddress>

    /// The leases on record.
    func leaseBook() throws(PostgresError) -> LeaseBook

    /// Brings the record up to date.
    func change(_ book: [LeaseBook.Change]) throws(PostgresError)

    /// Does what gateways ask about leases and sessions.
    func perform(_ commands: [SessionStoreCommand]) throws(PostgresError) -> [Result<
        SessionStoreAnswer, PostgresError
    >]

    /// Reads pages; each head is read before its page.
    func pages(_ reads: [PageRead]) throws(PostgresError) -> [Result<ChannelPage, PostgresError>]

    /// The last valid, stored oplogs between two positions, newest first: what a threshold counts over.
    func newest(
        of channelID: Int64, after: OplogID, below: OplogID, limit: Int
    ) throws(PostgresError) -> [OplogStore.Standing]

    /// Records that the outcome of pushes that are stored nowhere is known.
    func recordOutcomes(of pushes: [OplogStore.LivePush]) throws(PostgresError)

    /// Notes repeats and raises sync points.
    func record(
        _ resends: [SyncPointStore.Resend], _ advances: [SyncPointStore.Advance]
    ) throws(PostgresError)
}

/// A page to read.
package struct PageRead: Sendable {
    package var channelID: Int64
    /// What the reader has: tombstones are read from here.
    package var after: OplogID
    /// Oplogs are read from here.
    package var start: OplogID
    package var limit: Int
    /// Of a single-device channel: only while this device is the owner.
    package var owner: DeviceID?

    package init(channelID: Int64, after: OplogID, start: OplogID, limit: Int, owner: DeviceID?) {
        self.channelID = channelID
        self.after = after
        self.start = start
        self.limit = limit
        self.owner = owner
    }
}

/// One thing that a gateway asks about leases and sessions.
package enum SessionStoreCommand: Sendable {
    case renewLease(gatewayID: String, epoch: Int64, controlVersion: Int64, sessions: Int)
    /// Registers a connection, then reads what it needs to know; the digest names its session.
    case open(DeviceSessionStore.Registration, sessionDigest: [UInt8])
    case close(instanceID: InstanceID, deviceID: DeviceID, connectionEpoch: Int64)
    case update(
        instanceID: InstanceID, deviceID: DeviceID, connectionEpoch: Int64, isForeground: Bool,
        verdictMilliseconds: Int64)
    /// Finds channels that got an oplog since a snapshot.
    case sweep(gatewayID: String, since: String)
    case finishReread(Int64)
    /// Keeps values for a user.
    case keepParameters([DeviceParameter], of: UserID, in: InstanceID)
}

/// A page as the store has it.
package struct ChannelPage: Sendable {
    /// Of the channel, read before the rest; nil: another device owns the user.
    package var head: OplogID?
    /// Above the start; those that are not persistent have no payload here, and their notice may be on its way.
    package var entries: [Oplog]
    /// Up to the start.
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
