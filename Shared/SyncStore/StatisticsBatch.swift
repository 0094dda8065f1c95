package import SyncModel

/// Facts merged before they go to the database: per oplog the earliest of each kind, per device the furthest stored.
///
/// Merging is a minimum or a maximum, so order and repetition of facts make no difference (spec S1).
package struct StatisticsBatch: Sendable, Equatable {
    /// An oplog's place.
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

    /// When the first of each kind of fact about an oplog happened; nil: no such fact.
    package struct Moments: Hashable, Sendable {
        package var accepted: WallTime?
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

    /// What became of an oplog at one device; nil: no such fact.
    package struct Delivery: Hashable, Sendable {
        package var handedOut: WallTime?
        package var attempts = 0
        package var skipped: Skip?
        package var confirmed: WallTime?
        package var dead: Death?
    }

    /// When an oplog was given up, and who was bound then.
    package struct Death: Hashable, Comparable, Sendable {
        package let at: WallTime
        package let user: String

        package static func < (left: Death, right: Death) -> Bool {
            (left.at, left.user) < (right.at, right.user)
        }
    }

    /// When and by which rule an oplog was passed over.
    package struct Skip: Hashable, Comparable, Sendable {
        package let at: WallTime
        package let reason: SkipReason

        package static func < (left: Skip, right: Skip) -> Bool {
            (left.at, left.reason.rawValue) < (right.at, right.reason.rawValue)
        }
    }

    /// The end of a range that a threshold passed over for one device.
    package struct DiscardKey: Hashable, Comparable, Sendable {
        package let receiver: ReceiverKey
        package let upto: OplogID

        package static func < (left: DiscardKey, right: DiscardKey) -> Bool {
            (left.receiver, left.upto) < (right.receiver, right.upto)
        }
    }

    /// Where such a range begins, and when it was passed over.
    package struct Discard: Hashable, Sendable {
        package var after: OplogID
        package var at: WallTime
    }

    /// A device and a channel of which it stores oplogs.
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

    /// How far a device has stored a channel, and when it said so.
    package struct Progress: Hashable, Sendable {
        package var upto: OplogID
        package var at: WallTime
    }

    package private(set) var addresses: [Int64: ChannelAddress] = [:]
    package private(set) var oplogs: [OplogKey: Moments] = [:]
    package private(set) var stored: [ReceiverKey: Progress] = [:]
    package private(set) var deliveries: [DeliveryKey: Delivery] = [:]
    package private(set) var discarded: [DiscardKey: Discard] = [:]

    package init() {}

    /// Nothing to fold.
    package var isEmpty: Bool { oplogs.isEmpty && stored.isEmpty && deliveries.isEmpty && discarded.isEmpty }

    /// The service took an oplog for this channel.
    package mutating func accepted(_ key: OplogKey, of address: ChannelAddress, at time: WallTime) {
        addresses[key.channelID] = address
        oplogs[key, default: Moments()].accepted.keepEarlier(time)
    }

    /// An oplog went out to a device.
    package mutating func handedOut(_ key: OplogKey, to device: DeviceID, at time: WallTime) {
        oplogs[key, default: Moments()].handedOut.keepEarlier(time)
        deliveries[DeliveryKey(key, device), default: Delivery()].handedOut.keepEarlier(time)
    }

    /// A device's app confirmed an oplog.
    package mutating func confirmed(_ key: OplogKey, by device: DeviceID, at time: WallTime) {
        oplogs[key, default: Moments()].confirmed.keepEarlier(time)
        deliveries[DeliveryKey(key, device), default: Delivery()].confirmed.keepEarlier(time)
    }

    /// A rule passed an oplog over for a device.
    package mutating func skipped(_ key: OplogKey, for device: DeviceID, because reason: SkipReason, at time: WallTime)
    {
        let skip = Skip(at: time, reason: reason)
        let key = DeliveryKey(key, device)
        deliveries[key, default: Delivery()].skipped = min(deliveries[key]?.skipped ?? skip, skip)
    }

    /// A device's app was given an oplog so often; `isDead`: and never again.
    ///
    /// - Parameter user: who was bound; empty: nobody.
    package mutating func resent(
        _ key: OplogKey, by device: DeviceID, user: String, attempts: Int, isDead: Bool, at time: WallTime
    ) {
        let key = DeliveryKey(key, device)
        var delivery = deliveries[key] ?? Delivery()
        delivery.attempts = max(delivery.attempts, attempts)
        let death = Death(at: time, user: user)
        if isDead { delivery.dead = max(delivery.dead ?? death, death) }
        deliveries[key] = delivery
    }

    /// A threshold passed over what a channel holds above `after` and up to `upto`.
    package mutating func discarded(_ key: ReceiverKey, after: OplogID, upto: OplogID, at time: WallTime) {
        let key = DiscardKey(receiver: key, upto: upto)
        let known = discarded[key] ?? Discard(after: after, at: time)
        discarded[key] = Discard(after: min(known.after, after), at: min(known.at, time))
    }

    /// A device stored everything meant for it up to an oplog.
    package mutating func stored(_ key: ReceiverKey, upto: OplogID, at time: WallTime) {
        if let known = stored[key], (known.upto, time) >= (upto, known.at) { return }
        stored[key] = Progress(upto: upto, at: time)
    }
}

extension WallTime? {
    fileprivate mutating func keepEarlier(_ time: WallTime) { self = self.map { Swift.min($0, time) } ?? time }
}
