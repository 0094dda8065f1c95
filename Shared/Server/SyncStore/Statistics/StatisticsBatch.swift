package import SyncModel

/// Facts that are merged before they go to the database: for each oplog and device the earliest of each kind.
///
/// Merging takes a minimum or a maximum, so order and repetition of facts make no difference (S1).
package struct StatisticsBatch: Sendable, Equatable {
    /// An oplog, by its channel and id.
    package struct OplogKey: Hashable, Comparable, Sendable {
        package let channelID: Int64
        package let oplogID: OplogID

        package init(channelID: Int64, oplogID: OplogID) {
            self.channelID = channelID
            self.oplogID = oplogID
        }

        package static func < (left: OplogKey, right: OplogKey) -> Bool {
            (left.channelID, left.oplogID) < (right.channelID, right.oplogID)
        }
    }

    /// The time of the first fact of each kind about an oplog; nil: no such fact.
    package struct Moments: Hashable, Sendable {
        /// The time of the first fact of any kind.
        package var noted: WallTime
        package var handedOut: WallTime?
        package var confirmed: WallTime?
    }

    /// An oplog at one device.
    package struct DeliveryKey: Hashable, Comparable, Sendable {
        package let oplog: OplogKey
        package let deviceID: DeviceID

        package init(_ oplog: OplogKey, _ deviceID: DeviceID) {
            self.oplog = oplog
            self.deviceID = deviceID
        }

        package static func < (left: DeliveryKey, right: DeliveryKey) -> Bool {
            (left.oplog, left.deviceID.text) < (right.oplog, right.deviceID.text)
        }
    }

    /// The events of an oplog at one device; nil: no such fact.
    package struct Delivery: Hashable, Sendable {
        package var handedOut: HandOut?
        package var attempts = 0
        package var skipped: Skip?
        package var confirmed: WallTime?
        package var dead: Death?
    }

    /// A hand-out: its time, the kind of device, and, for a global push, the bound user.
    package struct HandOut: Hashable, Comparable, Sendable {
        package let at: WallTime
        /// The value is nil for a system that no push can name.
        package let operatingSystem: OperatingSystem?
        /// `DeviceTraits.countedVersion`.
        package let appVersion: String
        /// Set for a global push for users; otherwise empty.
        package let user: String

        package init(at: WallTime, operatingSystem: OperatingSystem?, appVersion: String, user: String) {
            self.at = at
            self.operatingSystem = operatingSystem
            self.appVersion = appVersion
            self.user = user
        }

        package static func < (left: HandOut, right: HandOut) -> Bool {
            (left.at, left.operatingSystem?.rawValue ?? 0, left.appVersion, left.user)
                < (right.at, right.operatingSystem?.rawValue ?? 0, right.appVersion, right.user)
        }
    }

    /// When an oplog became a dead letter, and the bound user then.
    package struct Death: Hashable, Comparable, Sendable {
        package let at: WallTime
        package let user: String

        package static func < (left: Death, right: Death) -> Bool {
            (left.at, left.user) < (right.at, right.user)
        }
    }

    /// When and by which rule an oplog was skipped.
    package struct Skip: Hashable, Comparable, Sendable {
        package let at: WallTime
        package let reason: SkipReason

        package static func < (left: Skip, right: Skip) -> Bool {
            (left.at, left.reason.rawValue) < (right.at, right.reason.rawValue)
        }
    }

    /// The end of a range that a threshold discarded for one device.
    package struct DiscardKey: Hashable, Comparable, Sendable {
        package let receiver: ReceiverKey
        package let upto: OplogID

        package static func < (left: DiscardKey, right: DiscardKey) -> Bool {
            (left.receiver, left.upto) < (right.receiver, right.upto)
        }
    }

    /// The begin of such a range, and the time when it was discarded.
    package struct Discard: Hashable, Sendable {
        package var after: OplogID
        package var at: WallTime
    }

    /// A device and a channel that it receives.
    package struct ReceiverKey: Hashable, Comparable, Sendable {
        package let channelID: Int64
        package let deviceID: DeviceID

        package init(channelID: Int64, deviceID: DeviceID) {
            self.channelID = channelID
            self.deviceID = deviceID
        }

        package static func < (left: ReceiverKey, right: ReceiverKey) -> Bool {
            (left.channelID, left.deviceID.text) < (right.channelID, right.deviceID.text)
        }
    }

    /// A gateway's count of an instance's devices at the begin of a minute.
    package struct ConnectedKey: Hashable, Comparable, Sendable {
        package let instanceID: InstanceID
        package let minute: WallTime
        package let gatewayID: String

        package static func < (left: ConnectedKey, right: ConnectedKey) -> Bool {
            (left.instanceID.text, left.minute, left.gatewayID) < (right.instanceID.text, right.minute, right.gatewayID)
        }
    }

    package private(set) var oplogs: [OplogKey: Moments] = [:]
    package private(set) var deliveries: [DeliveryKey: Delivery] = [:]
    package private(set) var discarded: [DiscardKey: Discard] = [:]
    package private(set) var connected: [ConnectedKey: Int] = [:]

    package init() {}

    /// The batch has no facts.
    package var isEmpty: Bool { oplogs.isEmpty && discarded.isEmpty && connected.isEmpty }

    /// Splits the batch into parts of about `size` oplogs and deliveries each: folding all parts gives the same figures
    /// as folding the whole. One part has an oplog with all its deliveries; but an oplog with more deliveries than
    /// `size` is in several parts, each with some of its deliveries.
    package func parts(ofRows size: Int) -> [StatisticsBatch] {
        let count = (max(oplogs.count, deliveries.count) + size - 1) / size
        guard count > 1 else { return [self] }
        var devices: [OplogKey: Int] = [:]
        for key in deliveries.keys { devices[key.oplog, default: 0] += 1 }
        // Ids of a channel rise by one, so this spreads a busy channel over all parts.
        func part(of key: OplogKey, device: Int = 0) -> Int {
            Int(UInt64(bitPattern: key.channelID &+ key.oplogID.value &+ Int64(device)) % UInt64(count))
        }
        var parts = [StatisticsBatch](repeating: StatisticsBatch(), count: count)
        for (key, moments) in oplogs { parts[part(of: key)].oplogs[key] = moments }
        for (key, delivery) in deliveries {
            guard devices[key.oplog, default: 0] > size else {
                parts[part(of: key.oplog)].deliveries[key] = delivery
                continue
            }
            let part = part(of: key.oplog, device: key.deviceID.hashValue)
            parts[part].deliveries[key] = delivery
            parts[part].oplogs[key.oplog] = oplogs[key.oplog]
        }
        (parts[0].discarded, parts[0].connected) = (discarded, connected)
        return parts
    }

    /// The channels of all oplogs.
    package var channels: Set<Int64> { Set(oplogs.keys.lazy.map(\.channelID)) }

    /// Adds a hand-out of an oplog to a device.
    package mutating func handedOut(_ key: OplogKey, to device: DeviceID, as handOut: HandOut) {
        record(key, at: handOut.at) { $0.handedOut.formMinimum(handOut.at) }
        deliveries[DeliveryKey(key, device), default: Delivery()].handedOut.formMinimum(handOut)
    }

    /// Adds a confirmation by a device's app.
    package mutating func confirmed(_ key: OplogKey, by device: DeviceID, at time: WallTime) {
        record(key, at: time) { $0.confirmed.formMinimum(time) }
        deliveries[DeliveryKey(key, device), default: Delivery()].confirmed.formMinimum(time)
    }

    /// Adds that a rule skipped an oplog for a device.
    package mutating func skipped(_ key: OplogKey, for device: DeviceID, because reason: SkipReason, at time: WallTime)
    {
        record(key, at: time)
        let skip = Skip(at: time, reason: reason)
        let key = DeliveryKey(key, device)
        deliveries[key, default: Delivery()].skipped = min(deliveries[key]?.skipped ?? skip, skip)
    }

    /// Adds a report of `attempts` hand-outs to a device's app; `isDead`: the oplog is a dead letter.
    ///
    /// - Parameter user: the bound user; empty: none.
    package mutating func resent(
        _ key: OplogKey, by device: DeviceID, user: String, attempts: Int, isDead: Bool, at time: WallTime
    ) {
        record(key, at: time)
        let key = DeliveryKey(key, device)
        var delivery = deliveries[key] ?? Delivery()
        delivery.attempts = max(delivery.attempts, attempts)
        let death = Death(at: time, user: user)
        if isDead { delivery.dead = max(delivery.dead ?? death, death) }
        deliveries[key] = delivery
    }

    /// Adds that a threshold discarded the ids of a channel above `after` up to `upto`.
    package mutating func discarded(_ key: ReceiverKey, after: OplogID, upto: OplogID, at time: WallTime) {
        let key = DiscardKey(receiver: key, upto: upto)
        let known = discarded[key] ?? Discard(after: after, at: time)
        discarded[key] = Discard(after: min(known.after, after), at: min(known.at, time))
    }

    /// Adds the number of connected devices of an instance at a gateway when the minute of `time` began.
    package mutating func connected(
        _ devices: Int, of instanceID: InstanceID, gatewayID: String, at time: WallTime
    ) {
        let minute = WallTime(milliseconds: time.milliseconds - time.milliseconds % 60_000)
        let key = ConnectedKey(instanceID: instanceID, minute: minute, gatewayID: gatewayID)
        connected[key] = max(connected[key] ?? 0, devices)
    }

    private mutating func record(_ key: OplogKey, at time: WallTime, _ change: (inout Moments) -> Void = { _ in }) {
        // In place, because it runs for every fact: the key is looked up once.
        func merge(_ moments: inout Moments) {
            moments.noted = min(moments.noted, time)
            change(&moments)
        }
        merge(&oplogs[key, default: Moments(noted: time)])
    }
}

extension Optional where Wrapped: Comparable {
    fileprivate mutating func formMinimum(_ value: Wrapped) { self = self.map { Swift.min($0, value) } ?? value }
}
