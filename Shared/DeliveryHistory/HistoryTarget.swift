package import SyncModel

/// Whom a push of a run is for: a channel, named so that a person can read the history.
package struct HistoryTarget: Hashable, Sendable, Codable {
    package let instance: String
    package let kind: ChannelKind
    /// The user or device; empty for everybody.
    package let target: String
    package let bizType: String

    package init(instance: String, kind: ChannelKind, target: String, bizType: String) {
        self.instance = instance
        self.kind = kind
        self.target = target
        self.bizType = bizType
    }

    /// The channel as a push names it: a client keeps everybody's for each of its users.
    package var ofEverybody: HistoryTarget {
        kind.isGlobal ? HistoryTarget(instance: instance, kind: kind, target: "", bizType: bizType) : self
    }

    /// All channels of the same user or device, or of everybody, as one.
    var audience: HistoryTarget { HistoryTarget(instance: instance, kind: kind, target: target, bizType: "") }

    /// What a push to it carries: whom it is for, so that data which goes astray is seen (reliability I6).
    package func payload(of push: String) -> String {
        "\(instance)|\(kind.rawValue)|\(target)|\(bizType)|\(push)"
    }
}

extension ChannelKind: Codable {}
