package import SyncModel

/// The store's answer to the command of the same name.
package enum SessionStoreAnswer: Sendable {
    case lease(DeviceSessionStore.Lease)
    case opened(Opened)
    case done
    case swept(DeviceSessionStore.Sweep)
    /// The values are stored; these gateways have sessions of the user.
    case storedParameters(gateways: [String])

    /// A registration, and the initial state of the session.
    package struct Opened: Sendable {
        package var registered: DeviceSessionStore.Registered
        package var channels: [DeviceSessionStore.ChannelState]
        package var rereads: [RereadStore.Reread]
        package var revocation: RevocationStore.Revocation?
        /// The user's stored values, when the gateway requested filters.
        package var userParameters: [DeviceParameter] = []
        /// Sync IDs whose filter could not be changed: the former one stays in force.
        package var refusedFilters: [BizType] = []

        package init(
            registered: DeviceSessionStore.Registered, channels: [DeviceSessionStore.ChannelState],
            rereads: [RereadStore.Reread], revocation: RevocationStore.Revocation?
        ) {
            self.registered = registered
            self.channels = channels
            self.rereads = rereads
            self.revocation = revocation
        }
    }
}
