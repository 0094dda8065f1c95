import SyncModel

/// One channel as the local store knows it.
struct LocalChannel: Hashable, Sendable {
    /// What tells channels of one store apart.
    struct Key: Hashable, Sendable {
        let kind: ChannelKind
        /// Of channels of the device: empty, or the former device id that they were of.
        let userID: String
        let bizType: String

        /// Results of the device's operations, which the client itself takes.
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
    /// The sync point: everything up to here is stored or was not meant for this receiver. It only rises.
    var position: OplogID
    /// What is here of it.
    var range = LocalRange()

    /// Whether its data may reach the app while this user is bound.
    func isVisible(to userID: String?) -> Bool {
        #if KNOWN_BAD
            if KnownBad.clientShowsAnyUser.isOn { return true }
        #endif
        return !key.kind.needsUser || userID?.isSame(as: key.userID) == true
    }

    /// Whose data it has; nil: the device's.
    var userID: String? { key.kind.needsUser ? key.userID : nil }
}
