package import SyncModel

extension SyncModel.ChannelKind {
    /// Nil for a kind that this build does not know.
    package init?(wire: Mss_Device_V1_ChannelKind) {
        self.init(rawValue: Int16(truncatingIfNeeded: wire.rawValue))
    }

    /// The kind as the wire has it.
    package var wire: Mss_Device_V1_ChannelKind { Mss_Device_V1_ChannelKind(rawValue: Int(rawValue)) ?? .user }
}
