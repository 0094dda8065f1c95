import BusMessages
import SwiftProtobuf
import SyncModel

@testable import SyncStore

/// The store in memory, by the same rules as the SQL; `DeliveryStoreContractTests` hold it to that.
struct MemoryStore {
    struct Channel {
        let id: Int64
        let address: ChannelAddress
        var head = OplogID.zero
        var oplogs: [Oplog] = []
        /// The number of the transaction that stored the last oplog.
        var writtenBy: Int64 = 0
        var keys: [ThirdMessageID: Int] = [:]
        /// Their payloads are gone.
        var recalled: Set<OplogID> = []
        /// Not persistent, and nobody has recorded what became of them.
        var awaitsOutcome: Set<OplogID> = []

        /// What a page has of it: valid and not recalled; what is stored, and what may still go out live.
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
        #if KNOWN_BAD
            /// By the database's clock.
            var until: WallTime
        #endif
        var renewals: Int64 = 0
        var controlVersion: Int64
        var sessions: Int
    }

    struct Receiver: Hashable {
        let channelID: Int64
        let deviceID: String
        let storeID: String
        /// Empty but for global data for users.
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

    /// Rises with every failover: ids of a new incarnation lie above all of those before (reliability R5).
    private(set) var incarnation: Int64 = 0
    var presenceEpoch: Int64 = 0
    /// Appends so far. Each is over when its call returns, so this number says what a snapshot has.
    private var lastTransaction: Int64 = 0
    private var nextChannelID: Int64 = 1
    var instances: [InstanceID: Instance] = [:]
    var configurations: [ConfigurationKey: SyncConfiguration] = [:]
    var channels: [Channel] = []
    private var places: [ChannelAddress: Int] = [:]
    private var sessions: [DeviceKey: Session] = [:]
    var owners: [UserKey: Owner] = [:]
    private var leases: [String: Lease] = [:]
    /// How often leases were lost, and with them the book of leases.
    private var lostBooks = 0
    private var hasBook = true
    private var isBookComplete = true
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

    /// A standby takes over with what it has: this value. Sessions and leases are in unlogged tables, of which it has
    /// nothing.
    mutating func failedOver(from lost: MemoryStore) {
        incarnation = lost.incarnation + 1
        presenceEpoch = incarnation << 40
        nextChannelID = incarnation << 40
        #if KNOWN_BAD
            if !KnownBad.controlVersionRepeats.isOn { controlVersion = max(controlVersion + 1, incarnation << 40) }
        #else
            controlVersion = max(controlVersion + 1, incarnation << 40)
        #endif
        forgetSessions()
    }

    /// The server began anew after a crash: unlogged tables are empty.
    mutating func forgetSessions() {
        sessions = [:]
        leases = [:]
        lostBooks += 1
        hasBook = false
        isBookComplete = false
    }

    /// The pushes of a channel, for who checks.
    func oplogs(of address: ChannelAddress) -> [Oplog] {
        places[address].map { channels[$0].oplogs.filter { $0.recalls == nil } } ?? []
    }

    /// Whether the recall of a push is on record, for who checks.
    func hasRecalled(_ id: ThirdMessageID, of address: ChannelAddress) -> Bool {
        guard let place = places[address], let index = channels[place].keys[id] else { return false }
        return channels[place].recalled.contains(channels[place].oplogs[index].id)
    }

    /// The sync point of a receiver, for who checks.
    func syncPoint(
        of address: ChannelAddress, _ deviceID: String, _ storeID: String, _ userID: String = ""
    ) -> OplogID? {
        guard let place = places[address] else { return nil }
        let receiver = Receiver(
            channelID: channels[place].id, deviceID: deviceID, storeID: storeID, userID: userID)
        return syncPoints[receiver]?.oplogID
    }

    /// The channel of a number, for who checks.
    func address(of channelID: Int64) -> ChannelAddress? { channels.first { $0.id == channelID }?.address }

    /// How often the batch that a receiver has not acknowledged is on record to have gone out again, for who checks.
    func repeats(of address: ChannelAddress, _ deviceID: String, _ storeID: String) -> Int {
        guard let place = places[address] else { return 0 }
        return syncPoints[Receiver(channelID: channels[place].id, deviceID: deviceID, storeID: storeID)]?.repeats ?? 0
    }

    /// A session is ended for its tenant.
    mutating func revoke(_ userID: UserID, digest: [UInt8], at now: WallTime) {
        revocations.append((userID, digest, now))
    }

    /// Whether the end of a session is on record.
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
            #if KNOWN_BAD
                if KnownBad.headNotRaised.isOn { channels[index].head = place.before }
            #endif
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
            #if KNOWN_BAD
                if KnownBad.keysForgotten.isOn { channels[place].keys[stored.thirdMessageID] = nil }
            #endif
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

    /// From where a channel, which is made when there is none, draws its next ids.
    private mutating func draw(from address: ChannelAddress) -> OplogID {
        let place = places[address] ?? channels.count
        if place == channels.count {
            channels.append(Channel(id: nextChannelID, address: address))
            nextChannelID += 1
            places[address] = place
        }
        #if KNOWN_BAD
            return KnownBad.noEpoch.isOn ? channels[place].head : max(channels[place].head, OplogID(incarnation << 40))
        #else
            return max(channels[place].head, OplogID(incarnation << 40))
        #endif
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

    /// Takes the payload of a push away; a tombstone follows in its channel. Again, it changes nothing.
    mutating func recall(
        _ id: ThirdMessageID, of address: ChannelAddress, at now: WallTime
    ) -> OplogStore.Recalled? {
        guard let place = places[address], let index = channels[place].keys[id] else { return nil }
        let original = channels[place].oplogs[index]
        let before = channels[place].head
        if channels[place].recalled.insert(original.id).inserted {
            channels[place].oplogs[index].payload = []
            let mark = OplogID(max(before, OplogID(incarnation << 40)).value + 1)
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

    /// An operator changes a rule.
    mutating func change(_ configuration: SyncConfiguration) {
        let key = ConfigurationKey(instanceID: configuration.instanceID, bizType: configuration.bizType)
        configurations[key] = configuration
        controlVersion += 1
    }

    /// What processes copy.
    var control: (version: Int64, instances: [Instance], configurations: [SyncConfiguration]) {
        (controlVersion, Array(instances.values), configurations.values.sorted { $0.bizType.text < $1.bizType.text })
    }

    /// The same, as a process is sent it.
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
            sortedSessions.filter { isTarget($0, of: address) && isLive($0, at: now) }.map { session in
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

    private func isLive(_ session: Session, at now: WallTime) -> Bool {
        guard let lease = leases[session.registration.gatewayID] else { return false }
        #if KNOWN_BAD
            if KnownBad.leaseByDatabaseClock.isOn, lease.until <= now { return false }
        #endif
        return lease.epoch == session.registration.gatewayEpoch
    }

    // MARK: Sessions

    var leaseBook: LeaseBook {
        LeaseBook(
            id: hasBook ? "book-\(lostBooks)" : nil, isComplete: isBookComplete,
            leases: leases.sorted { $0.key < $1.key }.map { gatewayID, lease in
                LeaseBook.Lease(
                    gatewayID: gatewayID, epoch: lease.epoch, renewals: lease.renewals,
                    controlVersion: lease.controlVersion)
            })
    }

    mutating func change(_ book: LeaseBook.Change) {
        switch book {
        case .open: hasBook = true
        case .complete(let id): if id == leaseBook.id { isBookComplete = true }
        case .end(let lease): if leaseBook.leases.contains(lease) { leases[lease.gatewayID] = nil }
        }
    }

    mutating func perform(_ command: SessionStoreCommand, at now: WallTime) -> SessionStoreAnswer {
        switch command {
        case .renewLease(let gatewayID, let epoch, let controlVersion, let sessions):
            var lease = renewLease(gatewayID, epoch, controlVersion, sessions, at: now)
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
        case .update(let instanceID, let deviceID, let connectionEpoch, let isForeground, let verdict):
            let key = DeviceKey(instanceID: instanceID, deviceID: deviceID)
            guard sessions[key]?.connectionEpoch == connectionEpoch else { return .done }
            sessions[key]?.isForeground = isForeground
            sessions[key]?.verdictUntil = now + .milliseconds(verdict)
            return .done
        case .sweep(let gatewayID, let since):
            return .swept(sweep(gatewayID, since: since, at: now))
        case .keepParameters:
            return .kept(gateways: [])
        case .finishReread:
            return .done
        }
    }

    private mutating func renewLease(
        _ gatewayID: String, _ epoch: Int64, _ version: Int64, _ count: Int, at now: WallTime
    ) -> DeviceSessionStore.Lease {
        if var lease = leases[gatewayID], lease.epoch == epoch, holds(lease, at: now) {
            lease.renewals += 1
            (lease.controlVersion, lease.sessions) = (version, count)
            #if KNOWN_BAD
                lease.until = now + Limits.gatewayLease
            #endif
            leases[gatewayID] = lease
            return DeviceSessionStore.Lease(
                epoch: epoch, controlVersion: 0, gateways: leases.count,
                sessions: leases.values.map(\.sessions).reduce(0, +))
        }
        presenceEpoch += 1
        #if KNOWN_BAD
            leases[gatewayID] = Lease(
                epoch: presenceEpoch, until: now + Limits.gatewayLease, controlVersion: version, sessions: count)
        #else
            leases[gatewayID] = Lease(epoch: presenceEpoch, controlVersion: version, sessions: count)
        #endif
        sessions = sessions.filter {
            $0.value.registration.gatewayID != gatewayID || $0.value.registration.gatewayEpoch == presenceEpoch
        }
        return DeviceSessionStore.Lease(
            epoch: presenceEpoch, controlVersion: controlVersion, snapshot: "\(lastTransaction)")
    }

    /// A lease that is on record holds, whatever the database's clock says.
    private func holds(_ lease: Lease, at now: WallTime) -> Bool {
        #if KNOWN_BAD
            return !KnownBad.leaseByDatabaseClock.isOn || lease.until > now
        #else
            return true
        #endif
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
        sessions[key] = Session(
            registration: registration, connectionEpoch: epoch, isForeground: registration.isForeground,
            verdictUntil: now + .milliseconds(registration.verdictMilliseconds))
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

    private func sweep(_ gatewayID: String, since: String, at now: WallTime) -> DeviceSessionStore.Sweep {
        let known = Int64(since) ?? lastTransaction
        let moved = channels.filter { channel in
            #if KNOWN_BAD
                let isNew =
                    KnownBad.lateCommitNotSwept.isOn
                    ? channel.oplogs.last.map { $0.createdAt + .seconds(20) > now } ?? false
                    : channel.writtenBy > known
            #else
                let isNew = channel.writtenBy > known
            #endif
            guard isNew else { return false }
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
    ) -> [OplogStore.Standing] {
        guard let channel = channels.first(where: { $0.id == channelID }) else { return [] }
        return channel.oplogs.reversed().lazy
            .filter {
                $0.id > after && $0.id < below && $0.isPersistent && $0.validUntil > now && $0.recalls == nil
                    && !channel.recalled.contains($0.id)
            }
            .prefix(limit).map { OplogStore.Standing(id: $0.id, targeting: $0.targeting, attributes: $0.attributes) }
    }
}
