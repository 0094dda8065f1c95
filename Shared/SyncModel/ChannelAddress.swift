/// Who receives: the key under which a session listens. Global kinds have an empty target.
package struct TargetAddress: Hashable, Sendable {
    package let instanceID: InstanceID
    package let kind: ChannelKind
    /// A user id, a device id, or empty for global push.
    package let target: String

    package init(instanceID: InstanceID, kind: ChannelKind, target: String) {
        self.instanceID = instanceID
        self.kind = kind
        self.target = target
    }

    package static func == (left: TargetAddress, right: TargetAddress) -> Bool {
        left.kind == right.kind && left.instanceID == right.instanceID && left.target.isSame(as: right.target)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(instanceID)
        hasher.combine(kind)
        target.hashBytes(into: &hasher)
    }
}

/// The full name of a channel; parts are kept apart and never joined into one string (reliability SEC10).
package struct ChannelAddress: Hashable, Sendable {
    package let target: TargetAddress
    package let bizType: BizType

    package init(target: TargetAddress, bizType: BizType) {
        self.target = target
        self.bizType = bizType
    }
}
