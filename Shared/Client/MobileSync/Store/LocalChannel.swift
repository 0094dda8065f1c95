import SyncModel

/// A channel in the local store.
struct LocalChannel: Hashable, Sendable {
    /// The key that identifies a channel within one store.
    struct Key: Hashable, Sendable {
        let kind: ChannelKind
        /// The user of a user channel. For device channels: empty, or the former device id of the channel.
        let userID: String
        let bizType: String

        /// Whether the channel has results of the device's operations, which the client itself reads.
        var isOfResults: Bool { kind == .device && bizType.isSame(as: ReservedSyncID.results.text) }

        static func == (left: Key, right: Key) -> Bool {
            left.kind == right.kind && left.userID.isSame(as: right.userID) && left.bizType.isSame(as: right.bizType)
        }

        func hash(into hasher: inout Hasher) {
            hasher.combine(kind)
            userID.hashBytes(into: &hasher)
            bizType.hashBytes(into: &hasher)
        }
    }

    let row: Int64
    let key: Key
    /// The sync point: every oplog up to here is stored or was not meant for this receiver. It only rises.
    var position: OplogID
    /// The part of the channel that the local store has without gaps.
    var range = LocalRange()

    /// Whether the app may receive the channel's data while this user is bound.
    func isVisible(to userID: String?) -> Bool {
        !key.kind.needsUser || userID?.isSame(as: key.userID) == true
    }

    /// The user of the data; nil for device data.
    var userID: String? { key.kind.needsUser ? key.userID : nil }
}
