package import SyncModel

/// What the store answers to the command of the same name.
package enum SessionStoreAnswer: Sendable {
    case lease(DeviceSessionStore.Lease)
    case opened(Opened)
    case done
    case swept(DeviceSessionStore.Sweep)
    /// The values are kept; these gateways have sessions of the user.
    case kept(gateways: [String])

    /// A registration, and what a session begins with.
    package struct Opened: Sendable {
        package var registered: DeviceSessionStore.Registered
        package var channels: [DeviceSessionStore.ChannelState]
        package var rereads: [RereadStore.Reread]
        package var revocation: RevocationStore.Revocation?
        /// What the user keeps on the server, where the gateway asked for filters.
        package var userParameters: [DeviceParameter] = []
        /// Business types whose filter could not be changed: the one before is in force.
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
