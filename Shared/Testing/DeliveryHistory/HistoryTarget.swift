package import SyncModel

/// The channel that a push of a run is for, with readable names.
package struct HistoryTarget: Hashable, Sendable, Codable {
    package let instance: String
    package let kind: ChannelKind
    /// The user or device. Empty for a global channel.
    package let target: String
    package let bizType: String

    package init(instance: String, kind: ChannelKind, target: String, bizType: String) {
        self.instance = instance
        self.kind = kind
        self.target = target
        self.bizType = bizType
    }

    /// The channel as a push names it. A client keeps one copy of a global channel for each of its users.
    package var ofEverybody: HistoryTarget {
        kind.isGlobal ? HistoryTarget(instance: instance, kind: kind, target: "", bizType: bizType) : self
    }

    /// One key for all channels of the same user, of the same device, or of all users or devices.
    var audience: HistoryTarget { HistoryTarget(instance: instance, kind: kind, target: target, bizType: "") }

    /// The payload of a push to this channel. It names the channel, so that a checker finds data on a wrong device
    /// (I6).
    package func payload(of push: String) -> String {
        "\(instance)|\(kind.rawValue)|\(target)|\(bizType)|\(push)"
    }
}

extension ChannelKind: Codable {}
