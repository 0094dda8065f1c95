import Foundation
import SwiftProtobuf
package import SyncModel

// The only conversions between the schemas and SyncModel. Unknown values of a newer process become nil, and the caller
// drops the message.

extension SyncModel.ChannelKind {
    /// The value is nil for a kind that this build does not know.
    package init?(bus: Mss_Bus_V1_ChannelKind) {
        self.init(rawValue: Int16(truncatingIfNeeded: bus.rawValue))
    }

    /// The kind as a bus value.
    package var bus: Mss_Bus_V1_ChannelKind { Mss_Bus_V1_ChannelKind(rawValue: Int(rawValue)) ?? .user }
}

extension SyncModel.OperatingSystem {
    /// The value is nil when unrestricted or unknown.
    package init?(bus: Mss_Bus_V1_OperatingSystem) {
        self.init(rawValue: Int16(truncatingIfNeeded: bus.rawValue))
    }
}

extension Mss_Bus_V1_OperatingSystem {
    /// The bus value; `any` for nil.
    package init(_ system: SyncModel.OperatingSystem?) {
        self = system.flatMap { Self(rawValue: Int($0.rawValue)) } ?? .any
    }
}

extension Mss_Bus_V1_Verdict {
    /// The verdict for operators.
    package var word: String {
        switch self {
        case .valid: "valid"
        case .invalid: "invalid"
        case .unknown, .UNRECOGNIZED: "unknown"
        }
    }
}

extension TargetAddress {
    /// The value is nil for a kind that this build does not know.
    package init?(bus: Mss_Bus_V1_Target) {
        guard let kind = SyncModel.ChannelKind(bus: bus.kind) else { return nil }
        self.init(instanceID: InstanceID(bus.instanceID), kind: kind, target: bus.target)
    }

    /// The address as a bus message.
    package var bus: Mss_Bus_V1_Target {
        .with {
            $0.instanceID = instanceID.text
            $0.kind = kind.bus
            $0.target = target
        }
    }
}

extension SyncModel.Oplog {
    /// Converts an oplog of the bus.
    package init(bus: Mss_Bus_V1_Oplog) {
        self.init(
            id: OplogID(bus.id), thirdMessageID: ThirdMessageID(bus.thirdMessageID), payload: [UInt8](bus.payload),
            isBinary: bus.binary,
            targeting: Targeting(
                operatingSystem: SyncModel.OperatingSystem(bus: bus.operatingSystem),
                minimumVersion: bus.minimumVersion.isEmpty ? nil : bus.minimumVersion,
                maximumVersion: bus.maximumVersion.isEmpty ? nil : bus.maximumVersion,
                share: DeviceShare(start: Int(bus.shareStart), size: Int(bus.shareSize))),
            validUntil: WallTime(milliseconds: bus.validUntilMs), createdAt: WallTime(milliseconds: bus.createdAtMs),
            isPersistent: bus.persistent, recalls: bus.recalls == 0 ? nil : OplogID(bus.recalls),
            attributes: bus.attributes, conversation: bus.conversation)
    }

    /// The oplog as a bus message.
    package var bus: Mss_Bus_V1_Oplog {
        .with {
            $0.id = id.value
            $0.thirdMessageID = thirdMessageID.text
            $0.payload = Data(payload)
            $0.binary = isBinary
            $0.operatingSystem = Mss_Bus_V1_OperatingSystem(targeting.operatingSystem)
            $0.minimumVersion = targeting.minimumVersion ?? ""
            $0.maximumVersion = targeting.maximumVersion ?? ""
            if targeting.share != .everyone {
                $0.shareStart = UInt32(targeting.share.start)
                $0.shareSize = UInt32(targeting.share.size)
            }
            $0.validUntilMs = validUntil.milliseconds
            $0.createdAtMs = createdAt.milliseconds
            $0.persistent = isPersistent
            $0.recalls = recalls?.value ?? 0
            $0.attributes = attributes
            $0.conversation = conversation
        }
    }
}

extension SyncModel.Instance {
    /// Converts an instance of the bus.
    package init(bus: Mss_Bus_V1_Instance) {
        self.init(
            id: InstanceID(bus.instanceID), name: bus.name, isEnabled: bus.enabled, validatorURL: bus.validatorURL,
            verdictLifetime: .milliseconds(bus.verdictLifetimeMs),
            retention: .seconds(Int64(bus.retentionDays) * 86_400),
            validatorForm: bus.hasMobileGateway
                ? .mobileGateway(
                    .init(
                        appID: bus.mobileGateway.appID, workspaceID: bus.mobileGateway.workspaceID,
                        wrapsBody: bus.mobileGateway.wrapsBody)) : .http, requiresSignature: bus.requiresSignature,
            bindsDevices: bus.bindsDevices, latestConnectionOwns: bus.latestConnectionOwns,
            sessionUnits: bus.sessionUnits == 0 ? Limits.sessionUnits : Int(bus.sessionUnits),
            limits: SyncModel.KeyLimits(bus: bus.limits), keys: bus.keys.compactMap(SyncModel.AppKey.init(bus:)),
            relayURL: bus.relayURL, revision: Int(clamping: bus.revision))
    }

    /// The instance as a bus message.
    package var bus: Mss_Bus_V1_Instance {
        .with {
            $0.instanceID = id.text
            $0.name = name
            $0.enabled = isEnabled
            $0.validatorURL = validatorURL
            $0.verdictLifetimeMs = verdictLifetime.wholeMilliseconds
            $0.retentionDays = UInt32(retention.components.seconds / 86_400)
            $0.requiresSignature = requiresSignature
            $0.bindsDevices = bindsDevices
            $0.latestConnectionOwns = latestConnectionOwns
            $0.sessionUnits = UInt32(sessionUnits)
            $0.limits = limits.bus
            $0.keys = keys.map(\.bus)
            $0.relayURL = relayURL
            $0.revision = UInt64(clamping: revision)
            guard case .mobileGateway(let gateway) = validatorForm else { return }
            $0.mobileGateway.appID = gateway.appID
            $0.mobileGateway.workspaceID = gateway.workspaceID
            $0.mobileGateway.wrapsBody = gateway.wrapsBody
        }
    }
}

extension SyncModel.AppKey {
    /// The value is nil for a purpose that this build does not know.
    package init?(bus: Mss_Bus_V1_AppKey) {
        guard let purpose = Purpose(bus: bus.purpose) else { return nil }
        self.init(
            id: bus.keyID, purpose: purpose, sealedSecret: [UInt8](bus.sealedSecret),
            limits: SyncModel.KeyLimits(bus: bus.limits), createdAt: WallTime(milliseconds: bus.createdAtMs))
    }

    /// The key as a bus message.
    package var bus: Mss_Bus_V1_AppKey {
        .with {
            $0.keyID = id
            $0.purpose = purpose.bus
            $0.sealedSecret = Data(sealedSecret)
            $0.limits = limits.bus
            $0.createdAtMs = createdAt.milliseconds
        }
    }
}

extension SyncModel.AppKey.Purpose {
    /// The value is nil for a purpose that this build does not know.
    package init?(bus: Mss_Bus_V1_KeyPurpose) { self.init(rawValue: Int16(truncatingIfNeeded: bus.rawValue)) }

    /// The purpose as a bus value.
    package var bus: Mss_Bus_V1_KeyPurpose { Mss_Bus_V1_KeyPurpose(rawValue: Int(rawValue)) ?? .unknown }
}

extension SyncModel.KeyLimits {
    /// Converts limits of the bus.
    package init(bus: Mss_Bus_V1_KeyLimits) {
        self.init(
            requestsPerSecond: bus.requestsPerSecond == 0 ? nil : Int(bus.requestsPerSecond),
            pushesPerDay: bus.pushesPerDay == 0 ? nil : Int(clamping: bus.pushesPerDay))
    }

    /// The limits as a bus message.
    package var bus: Mss_Bus_V1_KeyLimits {
        .with {
            $0.requestsPerSecond = UInt32(clamping: requestsPerSecond ?? 0)
            $0.pushesPerDay = UInt64(clamping: pushesPerDay ?? 0)
        }
    }
}

extension SyncModel.SyncConfiguration {
    /// The value is nil for a kind that this build does not know.
    package init?(bus: Mss_Bus_V1_SyncConfiguration) {
        guard let kind = SyncModel.ChannelKind(bus: bus.kind) else { return nil }
        self.init(
            instanceID: InstanceID(bus.instanceID), bizType: BizType(bus.bizType), description: bus.description_p,
            kind: kind, isMultiDevice: bus.multiDevice, isPersistent: bus.persistent,
            repush: RepushMode(newest: Int(bus.threshold)), checksSession: bus.checksSession,
            isOnline: bus.online, isImmediate: bus.immediate,
            verdictLifetime: bus.hasVerdictLifetimeMs ? .milliseconds(bus.verdictLifetimeMs) : nil,
            subscription: SubscriptionText(
                filter: bus.filter, attributes: bus.attributes, parameters: bus.parameters),
            isFiltered: bus.filtered, revision: Int(clamping: bus.revision))
    }

    /// The configuration as a bus message.
    package var bus: Mss_Bus_V1_SyncConfiguration {
        .with {
            $0.instanceID = instanceID.text
            $0.bizType = bizType.text
            $0.description_p = description
            $0.kind = kind.bus
            $0.multiDevice = isMultiDevice
            $0.persistent = isPersistent
            $0.threshold = UInt32(repush.newest)
            $0.checksSession = checksSession
            $0.online = isOnline
            $0.revision = UInt64(clamping: revision)
            $0.immediate = isImmediate
            if let verdictLifetime { $0.verdictLifetimeMs = verdictLifetime.wholeMilliseconds }
            $0.filter = subscription.filter
            $0.attributes = subscription.attributes
            $0.parameters = subscription.parameters
            $0.filtered = isFiltered
        }
    }
}

extension SyncModel.PushToken {
    /// The value is nil for a provider that this build does not know.
    package init?(bus: Mss_Bus_V1_PushToken) {
        guard let provider = Provider(rawValue: Int16(truncatingIfNeeded: bus.provider)) else { return nil }
        self.init(provider: provider, text: bus.token)
    }

    /// The token as a bus message.
    package var bus: Mss_Bus_V1_PushToken {
        .with {
            $0.provider = UInt32(provider.rawValue)
            $0.token = text
        }
    }
}

extension SyncModel.DeviceParameter {
    /// The value is nil for a value that cannot be read.
    package init?(bus: Mss_Bus_V1_Parameter) {
        let value = bus.value.isEmpty ? nil : SubscriptionValue(json: bus.value)
        guard bus.value.isEmpty || value != nil else { return nil }
        self.init(bizType: BizType(bus.bizType), name: bus.name, value: value)
    }

    /// The value as a bus message.
    package var bus: Mss_Bus_V1_Parameter {
        .with {
            $0.bizType = bizType.text
            $0.name = name
            $0.value = value?.json ?? ""
        }
    }
}

extension SyncModel.FilterHistory {
    /// The value is nil without filters, and for filters that this build cannot read.
    package init?(bus: [Mss_Bus_V1_ChannelFilter]) {
        var segments: [Segment] = []
        for (place, filter) in bus.enumerated() {
            guard let resolved = ResolvedFilter(text: filter.filter) else { return nil }
            segments.append(
                Segment(number: place + 1, filter: resolved, upto: filter.upto == 0 ? nil : OplogID(filter.upto)))
        }
        if segments.isEmpty { return nil }
        self.init(segments: segments)
    }

    /// The filters as bus messages.
    package var bus: [Mss_Bus_V1_ChannelFilter] {
        segments.map { segment in
            .with {
                $0.upto = segment.upto?.value ?? 0
                $0.filter = segment.filter.text
            }
        }
    }
}
