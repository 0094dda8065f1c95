import SyncModel

/// One channel of a session; the target follows from the session's identity.
struct ChannelKey: Hashable {
    let kind: SyncModel.ChannelKind
    let bizType: BizType
}
