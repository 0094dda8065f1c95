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

    package init() {}

    /// Nothing to fold.
    package var isEmpty: Bool { oplogs.isEmpty && stored.isEmpty }

    /// The service took an oplog for this channel.
    package mutating func accepted(_ key: OplogKey, of address: ChannelAddress, at time: WallTime) {
        addresses[key.channelID] = address
        oplogs[key, default: Moments()].accepted.keepEarlier(time)
    }

    /// An oplog went out to a device.
    package mutating func handedOut(_ key: OplogKey, at time: WallTime) {
        oplogs[key, default: Moments()].handedOut.keepEarlier(time)
    }

    /// A device's app confirmed an oplog.
    package mutating func confirmed(_ key: OplogKey, at time: WallTime) {
        oplogs[key, default: Moments()].confirmed.keepEarlier(time)
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
