import ArgumentParser
import BusMessages
import SyncModel

/// A JSON file of instances and configurations, as `mssctl apply` reads and `mssctl export` writes it.
struct ControlFile: Codable {
    struct InstanceEntry: Codable {
        let instanceId: String
        let name: String?
        /// How the tenant is asked: as JSON over HTTP, or through an mPaaS mobile gateway.
        enum ValidatorMode: String, Codable, ExpressibleByArgument { case http, mgs }

        let validatorUrl: String?
        let validatorMode: ValidatorMode?
        let validatorWrapsBody: Bool?
        /// With mgs: how the mobile gateway knows the app. Without them those of an instance that exists stay, and a
        /// new one has the parts of its id.
        let gatewayAppId: String?
        let gatewayWorkspaceId: String?
        let verdictLifetimeSeconds: Int?
        let retentionDays: Int?
        let requireSignature: Bool?
        let requestsPerSecond: Int?
        let pushesPerDay: Int?
        /// A device id belongs to the secret that it is first registered with; false by default.
        let bindDevices: Bool?
        /// Every bind takes a user's single-device data over, not only one that the app asked for; false by default.
        let latestConnectionOwns: Bool?
        /// UTF-16 units of a session id at the most; 100 by default.
        let sessionLength: Int?
        /// Where operations of devices go; none by default, and of one that exists as it is.
        let relayUrl: String?
        /// True by default, and of one that exists as it is.
        let enabled: Bool?
    }

    struct ConfigurationEntry: Codable {
        enum Scope: String, Codable, ExpressibleByArgument { case appointed, global }
        enum Target: String, Codable, ExpressibleByArgument { case user, device }

        let instanceId: String
        let bizType: String
        let description: String
        let scope: Scope
        let target: Target
        let multiDevice: Bool?
        let persistent: Bool?
        let repush: Repush?
        let checkSession: Bool?
        /// How old a verdict may be; 0: asked before every batch; none: as the instance says.
        let verdictLifetimeSeconds: Int?
        let immediate: Bool?
        /// Which oplogs a receiver is sent; none by default.
        let filter: String?
        let attributes: String?
        let parameters: String?
        let online: Bool?
    }

    /// `"all"`, or the threshold.
    enum Repush: Codable {
        case all
        case threshold(Int)

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let threshold = try? container.decode(Int.self), (1...1_000).contains(threshold) {
                self = .threshold(threshold)
            } else if try container.decode(String.self) == "all" {
                self = .all
            } else {
                throw DecodingError.dataCorruptedError(
                    in: container, debugDescription: "repush is \"all\" or a number from 1 to 1000")
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .all: try container.encode("all")
            case .threshold(let threshold): try container.encode(threshold)
            }
        }
    }

    let instances: [InstanceEntry]?
    let configurations: [ConfigurationEntry]?
}

extension Instance {
    /// What the entry leaves out is as usual, but what protects an instance that exists, its being disabled too, is only
    /// taken off by name.
    init(_ entry: ControlFile.InstanceEntry, over existing: Instance? = nil) {
        self.init(
            id: InstanceID(entry.instanceId), name: entry.name ?? entry.instanceId,
            isEnabled: entry.enabled ?? existing?.isEnabled ?? true,
            validatorURL: entry.validatorUrl ?? "", verdictLifetime: .seconds(entry.verdictLifetimeSeconds ?? 600),
            retention: entry.retentionDays.map { .seconds($0 * 86_400) } ?? Limits.retention,
            validatorForm: ControlFile.InstanceEntry.validatorForm(
                of: InstanceID(entry.instanceId), mode: entry.validatorMode ?? .http, appID: entry.gatewayAppId,
                workspaceID: entry.gatewayWorkspaceId, wrapsBody: entry.validatorWrapsBody,
                over: existing?.validatorForm),
            requiresSignature: entry.requireSignature ?? existing?.requiresSignature ?? false,
            bindsDevices: entry.bindDevices ?? existing?.bindsDevices ?? false,
            latestConnectionOwns: entry.latestConnectionOwns ?? existing?.latestConnectionOwns ?? false,
            sessionUnits: entry.sessionLength ?? existing?.sessionUnits ?? Limits.sessionUnits,
            limits: KeyLimits(
                requestsPerSecond: entry.requestsPerSecond.map { $0 == 0 ? nil : $0 }
                    ?? existing?.limits.requestsPerSecond,
                pushesPerDay: entry.pushesPerDay.map { $0 == 0 ? nil : $0 } ?? existing?.limits.pushesPerDay),
            relayURL: entry.relayUrl ?? existing?.relayURL ?? "")
    }
}

extension ControlFile.InstanceEntry {
    /// All of an instance, but its keys.
    init(_ instance: Instance) {
        var gateway: ValidatorForm.MobileGateway?
        if case .mobileGateway(let its) = instance.validatorForm { gateway = its }
        self.init(
            instanceId: instance.id.text, name: instance.name, validatorUrl: instance.validatorURL,
            validatorMode: gateway == nil ? .http : .mgs, validatorWrapsBody: gateway?.wrapsBody,
            gatewayAppId: gateway?.appID, gatewayWorkspaceId: gateway?.workspaceID,
            verdictLifetimeSeconds: Int(instance.verdictLifetime.components.seconds),
            retentionDays: Int(instance.retention.components.seconds / 86_400),
            requireSignature: instance.requiresSignature,
            // 0: no limit.
            requestsPerSecond: instance.limits.requestsPerSecond ?? 0, pushesPerDay: instance.limits.pushesPerDay ?? 0,
            bindDevices: instance.bindsDevices, latestConnectionOwns: instance.latestConnectionOwns,
            sessionLength: instance.sessionUnits, relayUrl: instance.relayURL, enabled: instance.isEnabled)
    }
}

extension ControlFile.ConfigurationEntry {
    /// All of a configuration.
    init(_ configuration: SyncConfiguration) {
        let repush: ControlFile.Repush =
            switch configuration.repush {
            case .all: .all
            case .threshold(let newest): .threshold(newest)
            }
        self.init(
            instanceId: configuration.instanceID.text, bizType: configuration.bizType.text,
            description: configuration.description, scope: configuration.kind.isGlobal ? .global : .appointed,
            target: configuration.kind.needsUser ? .user : .device, multiDevice: configuration.isMultiDevice,
            persistent: configuration.isPersistent, repush: repush, checkSession: configuration.checksSession,
            verdictLifetimeSeconds: configuration.verdictLifetime.map { Int($0.components.seconds) },
            immediate: configuration.isImmediate, filter: configuration.subscription.filter,
            attributes: configuration.subscription.attributes, parameters: configuration.subscription.parameters,
            online: configuration.isOnline)
    }
}

extension Instance {
    /// The instance for the writer; throws what is wrong with it, before a number is cut to what the schema holds.
    var soundBus: Mss_Bus_V1_Instance {
        get throws {
            if let fault { throw ValidationError("instance \(id): \(fault)") }
            return bus
        }
    }
}

extension SyncConfiguration {
    /// The configuration for the writer; throws what is wrong with it, before a number is cut to what the schema holds.
    var soundBus: Mss_Bus_V1_SyncConfiguration {
        get throws {
            if let fault { throw ValidationError("\(bizType): \(fault)") }
            return bus
        }
    }
}

extension ControlFile.InstanceEntry {
    /// How the tenant is asked: what is not named stays as it is. The ids of a new mobile gateway are the parts of the
    /// instance's id when these are certain; otherwise they are empty, which is no form that can be stored.
    static func validatorForm(
        of instanceID: InstanceID, mode: ValidatorMode?, appID: String?, workspaceID: String?, wrapsBody: Bool?,
        over existing: ValidatorForm?
    ) -> ValidatorForm {
        var gateway: ValidatorForm.MobileGateway
        if case .mobileGateway(let its)? = existing {
            gateway = its
        } else {
            guard mode == .mgs else { return .http }
            gateway = .init(appID: instanceID.parts?.appID ?? "", workspaceID: instanceID.parts?.workspaceID ?? "")
        }
        guard mode != .http else { return .http }
        gateway.appID = appID ?? gateway.appID
        gateway.workspaceID = workspaceID ?? gateway.workspaceID
        gateway.wrapsBody = wrapsBody ?? gateway.wrapsBody
        return .mobileGateway(gateway)
    }
}

extension SyncConfiguration {
    /// What the entry leaves out is as the console preselects it (spec C3).
    init(_ entry: ControlFile.ConfigurationEntry) {
        let kind: ChannelKind =
            switch (entry.scope, entry.target) {
            case (.appointed, .user): .user
            case (.appointed, .device): .device
            case (.global, .user): .globalUser
            case (.global, .device): .globalDevice
            }
        let repush: RepushMode =
            switch entry.repush {
            case .all?: .all
            case .threshold(let newest)?: .threshold(newest)
            case nil: .threshold(Limits.defaultThreshold)
            }
        self.init(
            instanceID: InstanceID(entry.instanceId), bizType: BizType(entry.bizType),
            description: entry.description, kind: kind, isMultiDevice: kind.needsUser && (entry.multiDevice ?? true),
            isPersistent: kind.isGlobal || (entry.persistent ?? true), repush: repush,
            checksSession: kind.needsUser && (entry.checkSession ?? false), isOnline: entry.online ?? true,
            isImmediate: entry.immediate ?? false,
            verdictLifetime: entry.verdictLifetimeSeconds.map { .seconds($0) },
            subscription: SubscriptionText(
                filter: entry.filter ?? "", attributes: entry.attributes ?? "", parameters: entry.parameters ?? ""))
    }
}
