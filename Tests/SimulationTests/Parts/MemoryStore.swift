import BusMessages
import SwiftProtobuf
import SyncModel

@testable import SyncStore

/// The store in memory, by the same rules as the SQL. `DeliveryStoreContractTests` compare the two.
struct MemoryStore {
    struct Channel {
        let id: Int64
        let address: ChannelAddress
        var head = OplogID.zero
        var oplogs: [Oplog] = []
        /// The number of the transaction that stored the last oplog.
        var writtenBy: Int64 = 0
        var keys: [ThirdMessageID: Int] = [:]
        /// Recalled oplogs, whose payloads are erased.
        var recalled: Set<OplogID> = []
        /// Non-persistent pushes whose outcome is not recorded.
        var awaitsOutcome: Set<OplogID> = []

        /// The oplogs that a page can have: valid, not recalled, and stored or still deliverable as non-persistent.
        func valid(at now: WallTime) -> some Sequence<Oplog> {
            oplogs.lazy.filter { oplog in
                oplog.validUntil > now && !recalled.contains(oplog.id)
                    && (oplog.isPersistent
                        || awaitsOutcome.contains(oplog.id) && oplog.createdAt + Limits.liveNoticeWait > now)
            }
        }
    }

    private struct Session {
        var registration: DeviceSessionStore.Registration
        var connectionEpoch: Int64
        var isForeground: Bool
        var verdictUntil: WallTime
        /// The number of the registration or update that has set the foreground state and the verdict.
        var stateNumber: UInt64
    }

    private struct DeviceKey: Hashable {
        let instanceID: InstanceID
        let deviceID: DeviceID
    }

    struct UserKey: Hashable {
        let instanceID: InstanceID
        let userID: UserID
    }

    private struct Lease {
        var epoch: Int64
        var renewals: Int64 = 0
        var controlVersion: Int64
        var sessions: Int

        func recorded(of gatewayID: String) -> LeaseRecord.Lease {
            LeaseRecord.Lease(gatewayID: gatewayID, epoch: epoch, renewals: renewals, controlVersion: controlVersion)
        }
    }

    struct Receiver: Hashable {
        let channelID: Int64
        let deviceID: String
        let storeID: String
        /// Empty except for global user channels.
        var userID = ""
    }

    struct SyncPoint {
        var oplogID = OplogID.zero
        var acknowledged = OplogID.zero
        var resentID = OplogID.zero
        var repeats = 0
    }

    struct ConfigurationKey: Hashable {
        let instanceID: InstanceID
        let bizType: BizType
    }

    /// Rises with every failover. New ids lie above all ids of earlier epochs (R5).
    private(set) var databaseEpoch: Int64 = 0
    var presenceEpoch: Int64 = 0
    /// The number of appends. An append ends within its call, so this number identifies a snapshot.
    private var lastTransaction: Int64 = 0
    private var nextChannelID: Int64 = 1
    var instances: [InstanceID: Instance] = [:]
    var configurations: [ConfigurationKey: SyncConfiguration] = [:]
    var channels: [Channel] = []
    private var places: [ChannelAddress: Int] = [:]
    private var sessions: [DeviceKey: Session] = [:]
    var owners: [UserKey: Owner] = [:]
    private var leases: [String: Lease] = [:]
    private var replacedLeases: [LeaseRecord.Lease] = []
    /// The number of times that the lease record was lost.
    private var lostLeaseRecords = 0
    private var hasLeaseRecord = true
    private var isLeaseRecordComplete = true
    var syncPoints: [Receiver: SyncPoint] = [:]
    private var controlVersion: Int64 = 1
    private var revocations: [(userID: UserID, digest: [UInt8], at: WallTime)] = []

    init(instances: [Instance], configurations: [SyncConfiguration]) {
        for instance in instances { self.instances[instance.id] = instance }
        for configuration in configurations {
            let key = ConfigurationKey(instanceID: configuration.instanceID, bizType: configuration.bizType)
            self.configurations[key] = configuration
        }
    }

    /// Makes this value, the data of a standby, the primary. Sessions and leases are in unlogged tables, so a standby
    /// has none.
    mutating func failedOver(from lost: MemoryStore) {
        databaseEpoch = lost.databaseEpoch + 1
        presenceEpoch = databaseEpoch << 40
        nextChannelID = databaseEpoch << 40
        controlVersion = max(controlVersion + 1, databaseEpoch << 40)
        forgetSessions()
    }

    /// Empties the unlogged tables, as a crash of the server does.
    mutating func forgetSessions() {
        sessions = [:]
        leases = [:]
        replacedLeases = []
        lostLeaseRecords += 1
        hasLeaseRecord = false
        isLeaseRecordComplete = false
    }

    /// The pushes of a channel, for checks.
    func oplogs(of address: ChannelAddress) -> [Oplog] {
        places[address].map { channels[$0].oplogs.filter { $0.recalls == nil } } ?? []
    }

    /// Whether the recall of a push is stored, for checks.
    func hasRecalled(_ id: ThirdMessageID, of address: ChannelAddress) -> Bool {
        guard let place = places[address], let index = channels[place].keys[id] else { return false }
        return channels[place].recalled.contains(channels[place].oplogs[index].id)
    }

    /// The sync point of a receiver, for checks.
    func syncPoint(
        of address: ChannelAddress, _ deviceID: String, _ storeID: String, _ userID: String = ""
    ) -> OplogID? {
        guard let place = places[address] else { return nil }
        let receiver = Receiver(
            channelID: channels[place].id, deviceID: deviceID, storeID: storeID, userID: userID)
        return syncPoints[receiver]?.oplogID
    }

    /// The address of a channel id, for checks.
    func address(of channelID: Int64) -> ChannelAddress? { channels.first { $0.id == channelID }?.address }

    /// The recorded number of resends of a receiver's unacknowledged batch, for checks.
    func repeats(of address: ChannelAddress, _ deviceID: String, _ storeID: String) -> Int {
        guard let place = places[address] else { return 0 }
        return syncPoints[Receiver(channelID: channels[place].id, deviceID: deviceID, storeID: storeID)]?.repeats ?? 0
    }

    /// Stores the revocation of a user session.
    mutating func revoke(_ userID: UserID, digest: [UInt8], at now: WallTime) {
        revocations.append((userID, digest, now))
    }

    /// Whether a revocation of the session is stored.
    func hasRevoked(_ digest: [UInt8]) -> Bool { revocations.contains { $0.digest == digest } }

    private func revocation(
        of digest: [UInt8], _ userID: UserID?, at now: WallTime
    ) -> RevocationStore.Revocation? {
        let last = revocations.lastIndex { $0.userID == userID && ($0.digest.isEmpty || $0.digest == digest) }
        return last.map {
            RevocationStore.Revocation(
                number: Int64($0) + 1, agoMilliseconds: now.milliseconds - revocations[$0].at.milliseconds)
        }
    }

    // MARK: Appends

    mutating func append(_ pushes: [OplogStore.Append], at now: WallTime) -> [OplogStore.Appended?] {
        var drawn: [ChannelAddress: (before: OplogID, count: Int64, isNew: Set<ThirdMessageID>)] = [:]
        for push in pushes where configuration(of: push.address) != nil {
            var place = drawn[push.address] ?? (draw(from: push.address), 0, [])
            if place.isNew.insert(push.oplog.thirdMessageID).inserted { place.count += 1 }
            drawn[push.address] = place
        }
        for (address, place) in drawn {
            guard let index = places[address] else { continue }
            channels[index].head = OplogID(place.before.value + place.count)
        }
        lastTransaction += 1
        var numbers: [ChannelAddress: Int64] = [:]
        var known: [ChannelAddress: [ThirdMessageID: OplogStore.Appended]] = [:]
        return pushes.map { push in
            guard let configuration = configuration(of: push.address), let place = places[push.address],
                let before = drawn[push.address]?.before
            else { return nil }
            if var first = known[push.address]?[push.oplog.thirdMessageID] {
                first.isDuplicate = true
                return first
            }
            numbers[push.address, default: 0] += 1
            var stored = push.oplog
            stored.id = OplogID(before.value + (numbers[push.address] ?? 0))
            stored.createdAt = now
            let retention = instances[push.address.target.instanceID]?.retention ?? .zero
            stored.validUntil =
                push.oplog.validUntil.milliseconds > 0
                ? min(push.oplog.validUntil, now + retention) : now + retention
            stored.isPersistent = configuration.isPersistent
            var appended = OplogStore.Appended(
                channelID: channels[place].id, oplogID: stored.id, isDuplicate: false, headBefore: before,
                headAfter: channels[place].head, validUntil: stored.validUntil, createdAt: now,
                isPersistent: configuration.isPersistent,
                rules: ChannelRules(
                    isSingleDevice: configuration.isSingleDevice, checksSession: configuration.checksSession),
                isImmediate: configuration.isImmediate, awaitsOutcome: !configuration.isPersistent,
                databaseTime: now)
            if let index = channels[place].keys[stored.thirdMessageID] {
                appended.isDuplicate = true
                appended.oplogID = channels[place].oplogs[index].id
                appended.awaitsOutcome =
                    channels[place].awaitsOutcome.contains(appended.oplogID)
                    && !channels[place].recalled.contains(appended.oplogID)
            } else {
                if appended.awaitsOutcome { channels[place].awaitsOutcome.insert(stored.id) }
                channels[place].keys[stored.thirdMessageID] = channels[place].oplogs.count
                channels[place].oplogs.append(stored)
                channels[place].writtenBy = lastTransaction
            }
            known[push.address, default: [:]][stored.thirdMessageID] = appended
            return appended
        }
    }

    /// Returns the id after which a channel draws its next ids. Creates the channel when there is none.
    private mutating func draw(from address: ChannelAddress) -> OplogID {
        let place = places[address] ?? channels.count
        if place == channels.count {
            channels.append(Channel(id: nextChannelID, address: address))
            nextChannelID += 1
            places[address] = place
        }
        return max(channels[place].head, OplogID(databaseEpoch << 40))
    }

    private func configuration(of address: ChannelAddress) -> SyncConfiguration? {
        guard instances[address.target.instanceID]?.isEnabled == true,
            let configuration = configurations[
                ConfigurationKey(instanceID: address.target.instanceID, bizType: address.bizType)],
            configuration.isOnline, configuration.kind == address.target.kind
        else { return nil }
        return configuration
    }

    // MARK: Recalls

    /// Erases the payload of a push and appends a tombstone. A second recall changes nothing.
    mutating func recall(
        _ id: ThirdMessageID, of address: ChannelAddress, at now: WallTime
    ) -> OplogStore.Recalled? {
        guard let place = places[address], let index = channels[place].keys[id] else { return nil }
        let original = channels[place].oplogs[index]
        let before = channels[place].head
        if channels[place].recalled.insert(original.id).inserted {
            channels[place].oplogs[index].payload = []
            let mark = OplogID(max(before, OplogID(databaseEpoch << 40)).value + 1)
            channels[place].oplogs.append(
                Oplog(
                    id: mark, thirdMessageID: ThirdMessageID(""), payload: [], isBinary: false,
                    targeting: original.targeting, validUntil: now + Limits.retention, createdAt: now,
                    isPersistent: true, recalls: original.id))
            channels[place].head = mark
            lastTransaction += 1
            channels[place].writtenBy = lastTransaction
        }
        guard let tombstone = channels[place].oplogs.first(where: { $0.recalls == original.id }) else { return nil }
        return OplogStore.Recalled(
            channelID: channels[place].id, oplogID: original.id, tombstone: tombstone, headBefore: before)
    }

    // MARK: Control data

    /// Changes a configuration, as an operator does.
    mutating func change(_ configuration: SyncConfiguration) {
        let key = ConfigurationKey(instanceID: configuration.instanceID, bizType: configuration.bizType)
        configurations[key] = configuration
        controlVersion += 1
    }

    /// The control data that processes copy.
    var control: (version: Int64, instances: [Instance], configurations: [SyncConfiguration]) {
        (controlVersion, Array(instances.values), configurations.values.sorted { $0.bizType.text < $1.bizType.text })
    }

    /// The control data as a message.
    var snapshot: Mss_Bus_V1_Snapshot {
        .with {
            $0.version = control.version
            $0.instances = control.instances.map(\.bus)
            $0.configurations = control.configurations.map(\.bus)
        }
    }

    // MARK: Presence

    func presence(of addresses: [ChannelAddress], at now: WallTime) -> [DeviceSessionStore.Presence] {
        addresses.enumerated().flatMap { ordinal, address in
            sortedSessions.filter { isTarget($0, of: address) && isLive($0) }.map { session in
                let registration = session.registration
                return DeviceSessionStore.Presence(
                    ordinal: ordinal, gatewayID: registration.gatewayID, deviceID: registration.deviceID,
                    traits: registration.traits,
                    isOwner: address.target.kind == .user && owns(registration),
                    hasValidVerdict: session.verdictUntil > now,
                    isSuspended: registration.suspended.contains(address.bizType))
            }
        }
    }

    private var sortedSessions: [Session] {
        sessions.values.sorted { $0.registration.deviceID.text < $1.registration.deviceID.text }
    }

    private func isTarget(_ session: Session, of address: ChannelAddress) -> Bool {
        let (registration, target) = (session.registration, address.target)
        guard registration.instanceID == target.instanceID else { return false }
        return switch target.kind {
        case .user: registration.userID?.text == target.target
        case .device: registration.deviceID.text == target.target
        case .globalUser, .globalDevice: false
        }
    }

    private func isLive(_ session: Session) -> Bool {
        guard let lease = leases[session.registration.gatewayID] else { return false }
        return lease.epoch == session.registration.gatewayEpoch
    }

    // MARK: Sessions

    var leaseRecord: LeaseRecord {
        LeaseRecord(
            id: hasLeaseRecord ? "record-\(lostLeaseRecords)" : nil, isComplete: isLeaseRecordComplete,
            leases: (replacedLeases + leases.map { $1.recorded(of: $0) })
                .sorted { ($0.gatewayID, $0.epoch) < ($1.gatewayID, $1.epoch) })
    }

    mutating func change(_ book: LeaseRecord.Change) {
        switch book {
        case .open: hasLeaseRecord = true
        case .complete(let id): if id == leaseRecord.id { isLeaseRecordComplete = true }
        case .end(let lease):
            replacedLeases.removeAll { $0 == lease }
            if leases[lease.gatewayID]?.recorded(of: lease.gatewayID) == lease { leases[lease.gatewayID] = nil }
        }
    }

    mutating func perform(_ command: SessionStoreCommand, at now: WallTime) -> SessionStoreAnswer {
        switch command {
        case .renewLease(let gatewayID, let epoch, let controlVersion, let sessions):
            var lease = renewLease(gatewayID, epoch, controlVersion, sessions)
            lease.databaseTime = now
            return .lease(lease)
        case .open(let registration, let digest):
            var registered = register(registration, at: now)
            registered.databaseTime = now
            return .opened(
                SessionStoreAnswer.Opened(
                    registered: registered, channels: states(for: registration), rereads: [],
                    revocation: revocation(of: digest, registration.userID, at: now)))
        case .close(let instanceID, let deviceID, let connectionEpoch):
            let key = DeviceKey(instanceID: instanceID, deviceID: deviceID)
            if sessions[key]?.connectionEpoch == connectionEpoch { sessions[key] = nil }
            return .done
        case .update(let instanceID, let deviceID, let connectionEpoch, let number, let isForeground, let verdict):
            let key = DeviceKey(instanceID: instanceID, deviceID: deviceID)
            guard var session = sessions[key], session.connectionEpoch == connectionEpoch,
                session.stateNumber < number || number == 0
            else { return .done }
            session.isForeground = isForeground
            session.verdictUntil = now + .milliseconds(verdict)
            session.stateNumber = max(session.stateNumber, number)
            sessions[key] = session
            return .done
        case .sweep(let gatewayID, let since):
            return .swept(sweep(gatewayID, since: since))
        case .storeParameters:
            return .storedParameters(gateways: [])
        case .finishReread:
            return .done
        }
    }

    private mutating func renewLease(
        _ gatewayID: String, _ epoch: Int64, _ version: Int64, _ count: Int
    ) -> DeviceSessionStore.Lease {
        // A stored lease does not end by the database's clock.
        if var lease = leases[gatewayID], lease.epoch == epoch {
            lease.renewals += 1
            (lease.controlVersion, lease.sessions) = (max(version, lease.controlVersion), count)
            leases[gatewayID] = lease
            return DeviceSessionStore.Lease(
                epoch: epoch, controlVersion: 0, gateways: leases.count,
                sessions: leases.values.map(\.sessions).reduce(0, +))
        }
        presenceEpoch += 1
        if let replaced = leases[gatewayID] { replacedLeases.append(replaced.recorded(of: gatewayID)) }
        leases[gatewayID] = Lease(epoch: presenceEpoch, controlVersion: version, sessions: count)
        sessions = sessions.filter {
            $0.value.registration.gatewayID != gatewayID || $0.value.registration.gatewayEpoch == presenceEpoch
        }
        return DeviceSessionStore.Lease(
            epoch: presenceEpoch, controlVersion: controlVersion, snapshot: "\(lastTransaction)")
    }

    private mutating func register(
        _ registration: DeviceSessionStore.Registration, at now: WallTime
    ) -> DeviceSessionStore.Registered {
        guard leases[registration.gatewayID]?.epoch == registration.gatewayEpoch else {
            return DeviceSessionStore.Registered(connectionEpoch: 0, hasLease: false, ownsUser: false)
        }
        let key = DeviceKey(instanceID: registration.instanceID, deviceID: registration.deviceID)
        let held = sessions[key]
        let isSameGateway =
            held.map {
                $0.registration.gatewayID == registration.gatewayID
                    && $0.registration.gatewayEpoch == registration.gatewayEpoch
            } ?? false
        var epoch = registration.connectionEpoch
        if let held {
            let (own, other) = (registration.deviceConnectionNumber, held.registration.deviceConnectionNumber)
            let isCounted = registration.storeID == held.registration.storeID && own > 0 && other > 0 && own != other
            let isLate =
                isSameGateway
                && (registration.connectionNumber < held.registration.connectionNumber
                    || registration.registrationNumber < held.registration.registrationNumber)
            if isCounted ? own < other : isLate || epoch > 0 && epoch < held.connectionEpoch {
                return DeviceSessionStore.Registered(connectionEpoch: 0, hasLease: true, ownsUser: false)
            }
            if epoch == 0, isSameGateway, held.registration.connectionNumber == registration.connectionNumber {
                epoch = held.connectionEpoch
            } else if epoch < held.connectionEpoch {
                epoch = 0
            }
        }
        if epoch == 0 {
            presenceEpoch += 1
            epoch = presenceEpoch
        }
        var session = Session(
            registration: registration, connectionEpoch: epoch, isForeground: registration.isForeground,
            verdictUntil: now + .milliseconds(registration.verdictMilliseconds),
            stateNumber: registration.registrationNumber)
        if let held, held.connectionEpoch == epoch, held.stateNumber > session.stateNumber {
            session.isForeground = held.isForeground
            session.verdictUntil = held.verdictUntil
            session.stateNumber = held.stateNumber
        }
        sessions[key] = session
        let isRepeat = isSameGateway && held?.registration.registrationNumber == registration.registrationNumber
        let becomesOwner = !isRepeat && takeOwnership(for: registration)
        let supersedes = held.map { $0.connectionEpoch < epoch } ?? false
        return DeviceSessionStore.Registered(
            connectionEpoch: epoch, supersededGatewayID: supersedes ? held?.registration.gatewayID : nil,
            hasLease: true, ownsUser: owns(registration), ownershipEpoch: owner(for: registration)?.epoch ?? 0,
            becameOwner: becomesOwner)
    }

    private func states(for registration: DeviceSessionStore.Registration) -> [DeviceSessionStore.ChannelState] {
        channels.filter { channel in
            let target = channel.address.target
            guard target.instanceID == registration.instanceID else { return false }
            return switch target.kind {
            case .user: registration.userID?.text == target.target
            case .device: registration.deviceID.text == target.target
            case .globalUser: registration.userID != nil
            case .globalDevice: true
            }
        }.map { channel in
            let isOfUser = channel.address.target.kind == .globalUser
            let receiver = Receiver(
                channelID: channel.id, deviceID: registration.deviceID.text, storeID: registration.storeID.text,
                userID: isOfUser ? registration.userID?.text ?? "" : "")
            let own = syncPoints[receiver] ?? SyncPoint()
            let key = ConfigurationKey(
                instanceID: channel.address.target.instanceID, bizType: channel.address.bizType)
            let kind = channel.address.target.kind
            let isOwn = kind.isGlobal || configurations[key]?.scoped(to: kind)?.hasReceiverPerStore ?? false
            let highest = syncPoints.filter { $0.key.channelID == channel.id }.map(\.value.oplogID).max() ?? .zero
            return DeviceSessionStore.ChannelState(
                channelID: channel.id, address: channel.address, head: channel.head,
                syncPoint: isOwn ? own.oplogID : highest, acknowledged: own.acknowledged, resentID: own.resentID,
                repeats: own.repeats)
        }
    }

    private func sweep(_ gatewayID: String, since: String) -> DeviceSessionStore.Sweep {
        let known = Int64(since) ?? lastTransaction
        let moved = channels.filter { channel in
            guard channel.writtenBy > known else { return false }
            if channel.address.target.kind.isGlobal {
                let key = ConfigurationKey(
                    instanceID: channel.address.target.instanceID, bizType: channel.address.bizType)
                return configurations[key]?.isImmediate ?? false
            }
            return sessions.values.contains {
                $0.registration.gatewayID == gatewayID && isTarget($0, of: channel.address)
            }
        }
        return DeviceSessionStore.Sweep(
            channels: moved.map {
                DeviceSessionStore.ChannelState(
                    channelID: $0.id, address: $0.address, head: $0.head, syncPoint: .zero)
            }, upto: "\(lastTransaction)")
    }

    // MARK: Reads

    func page(_ read: PageRead, at now: WallTime) -> ChannelPage {
        guard let channel = channels.first(where: { $0.id == read.channelID }) else {
            return ChannelPage(head: .zero, entries: [], tombstones: [], databaseTime: now)
        }
        if let owner = read.owner {
            let key = UserKey(
                instanceID: channel.address.target.instanceID, userID: UserID(channel.address.target.target))
            guard owners[key]?.deviceID == owner else {
                return ChannelPage(head: nil, entries: [], tombstones: [], databaseTime: now)
            }
        }
        let valid = channel.valid(at: now)
        let tombstones = valid.filter { $0.id > read.after && $0.id <= read.start && $0.recalls != nil }
        return ChannelPage(
            head: channel.head,
            entries: valid.filter { $0.id > read.start }.prefix(read.limit).map { oplog in
                var oplog = oplog
                if !oplog.isPersistent { oplog.payload = [] }
                return oplog
            }, tombstones: Array(tombstones.prefix(read.limit)), databaseTime: now)
    }

    func newest(
        of channelID: Int64, after: OplogID, below: OplogID, limit: Int, at now: WallTime
    ) -> [OplogStore.ValidOplog] {
        guard let channel = channels.first(where: { $0.id == channelID }) else { return [] }
        return channel.oplogs.reversed().lazy
            .filter {
                $0.id > after && $0.id < below && $0.isPersistent && $0.validUntil > now && $0.recalls == nil
                    && !channel.recalled.contains($0.id)
            }
            .prefix(limit).map { OplogStore.ValidOplog(id: $0.id, targeting: $0.targeting, attributes: $0.attributes) }
    }
}
