/// A target: the key under which a session is registered for data. Global kinds have an empty target.
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

/// The full name of a channel. Its parts are never joined into one string (SEC10).
package struct ChannelAddress: Hashable, Sendable {
    package let target: TargetAddress
    package let bizType: BizType

    package init(target: TargetAddress, bizType: BizType) {
        self.target = target
        self.bizType = bizType
    }
}

/// The target type and push scope of a channel, in one closed set (W5).
package enum ChannelKind: Int16, Sendable, CaseIterable {
    /// Appointed push to one user.
    case user = 0
    /// Appointed push to one device.
    case device = 1
    /// Global push, received by every bound user.
    case globalUser = 2
    /// Global push, received by every device, bound or not.
    case globalDevice = 3

    /// The push scope, with its name in files, in the API and in audit records.
    package enum Scope: String, Codable, Sendable { case appointed, global }

    /// The target type, with its name in files, in the API and in audit records.
    package enum Target: String, Codable, Sendable { case user, device }

    /// Whether one stored oplog is for all receivers (D15).
    package var isGlobal: Bool { self == .globalUser || self == .globalDevice }
    /// Whether a device receives it only while a user is bound.
    package var needsUser: Bool { self == .user || self == .globalUser }

    package init(_ scope: Scope, _ target: Target) {
        switch (scope, target) {
        case (.appointed, .user): self = .user
        case (.appointed, .device): self = .device
        case (.global, .user): self = .globalUser
        case (.global, .device): self = .globalDevice
        }
    }

    package var scope: Scope { isGlobal ? .global : .appointed }
    package var target: Target { needsUser ? .user : .device }

    /// The kind with the same target type and this push scope.
    package func with(_ scope: Scope) -> ChannelKind { ChannelKind(scope, target) }

    /// Whether both are for users, or both for devices. A configuration may only change between such kinds (C4).
    package func hasSameTarget(as other: ChannelKind) -> Bool { needsUser == other.needsUser }
}
