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
            validatorForm: entry.validatorForm,
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
        var (mode, wrapsBody): (ValidatorMode, Bool?) = (.http, nil)
        if case .mobileGateway(let gateway) = instance.validatorForm { (mode, wrapsBody) = (.mgs, gateway.wrapsBody) }
        self.init(
            instanceId: instance.id.text, name: instance.name, validatorUrl: instance.validatorURL, validatorMode: mode,
            validatorWrapsBody: wrapsBody, verdictLifetimeSeconds: Int(instance.verdictLifetime.components.seconds),
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
    var validatorForm: ValidatorForm {
        Self.validatorForm(of: instanceId, mode: validatorMode, wrapsBody: validatorWrapsBody)
    }

    /// A mobile gateway knows the app by the two parts of the instance's id, `<workspaceId>_<appId>`.
    static func validatorForm(of instanceID: String, mode: ValidatorMode?, wrapsBody: Bool?) -> ValidatorForm {
        guard mode == .mgs else { return .http }
        let parts = instanceID.split(separator: "_", maxSplits: 1).map(String.init)
        return .mobileGateway(
            .init(
                appID: parts.last ?? "", workspaceID: parts.count == 2 ? parts[0] : "", wrapsBody: wrapsBody ?? false))
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
