import ArgumentParser
import BusMessages
import SyncModel

/// A JSON file of instances and configurations, for `mssctl apply` and `mssctl export`.
struct ControlFile: Codable {
    struct InstanceEntry: Codable {
        let instanceId: String
        let name: String?
        /// The form of requests to the tenant: JSON over HTTP, or through an mPaaS mobile gateway.
        enum ValidatorMode: String, Codable, ExpressibleByArgument { case http, mgs }

        let validatorUrl: String?
        let validatorMode: ValidatorMode?
        let validatorWrapsBody: Bool?
        /// With mgs: the ids of the app at the mobile gateway. By default an existing instance keeps its ids, and a new
        /// one uses the parts of its instance id.
        let gatewayAppId: String?
        let gatewayWorkspaceId: String?
        let verdictLifetimeSeconds: Int?
        let retentionDays: Int?
        let requireSignature: Bool?
        let requestsPerSecond: Int?
        let pushesPerDay: Int?
        /// A device id belongs to the secret of its first registration. False by default.
        let bindDevices: Bool?
        /// Every bind takes over a user's single-device data, not only an ownership request. False by default.
        let latestConnectionOwns: Bool?
        /// Longest session id in UTF-16 units. 100 by default.
        let sessionLength: Int?
        /// Endpoint for device operations. None by default. An existing instance keeps its endpoint.
        let relayUrl: String?
        /// True by default. An existing instance keeps its state.
        let enabled: Bool?
    }

    struct ConfigurationEntry: Codable {
        let instanceId: String
        let bizType: String
        let description: String
        let scope: ChannelKind.Scope
        let target: ChannelKind.Target
        let multiDevice: Bool?
        let persistent: Bool?
        let repush: RepushMode?
        let checkSession: Bool?
        /// Verdict lifetime. 0 for a verdict before every batch. By default the lifetime of the instance.
        let verdictLifetimeSeconds: Int?
        let immediate: Bool?
        /// The filter. None by default.
        let filter: String?
        let attributes: String?
        let parameters: String?
        let online: Bool?
    }

    let instances: [InstanceEntry]?
    let configurations: [ConfigurationEntry]?
}

extension Instance {
    /// Missing members have default values. Members that protect an existing instance keep their values, also the
    /// disabled state.
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
    /// All members of an instance, without its keys.
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
            // 0 means no limit.
            requestsPerSecond: instance.limits.requestsPerSecond ?? 0, pushesPerDay: instance.limits.pushesPerDay ?? 0,
            bindDevices: instance.bindsDevices, latestConnectionOwns: instance.latestConnectionOwns,
            sessionLength: instance.sessionUnits, relayUrl: instance.relayURL, enabled: instance.isEnabled)
    }
}

extension ControlFile.ConfigurationEntry {
    /// All members of a configuration.
    init(_ configuration: SyncConfiguration) {
        self.init(
            instanceId: configuration.instanceID.text, bizType: configuration.bizType.text,
            description: configuration.description, scope: configuration.kind.scope,
            target: configuration.kind.target, multiDevice: configuration.isMultiDevice,
            persistent: configuration.isPersistent, repush: configuration.repush,
            checkSession: configuration.checksSession,
            verdictLifetimeSeconds: configuration.verdictLifetime.map { Int($0.components.seconds) },
            immediate: configuration.isImmediate, filter: configuration.subscription.filter,
            attributes: configuration.subscription.attributes, parameters: configuration.subscription.parameters,
            online: configuration.isOnline)
    }
}

extension Instance {
    /// The message for the writer. Throws for an invalid value, before a number is clamped to its field.
    var validatedMessage: Mss_Bus_V1_Instance {
        get throws {
            if let fault { throw ValidationError("instance \(id): \(fault)") }
            return bus
        }
    }
}

extension SyncConfiguration {
    /// The message for the writer. Throws for an invalid value, before a number is clamped to its field.
    var validatedMessage: Mss_Bus_V1_SyncConfiguration {
        get throws {
            if let fault { throw ValidationError("\(bizType): \(fault)") }
            return bus
        }
    }
}

extension ControlFile.InstanceEntry {
    /// The form of requests to the tenant. Missing values keep the existing ones. The ids of a new mobile gateway are
    /// the parts of the instance id, if it has exactly two. Otherwise they are empty, which the store refuses.
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
    /// Missing members have the defaults of the console (C3).
    init(_ entry: ControlFile.ConfigurationEntry) {
        let kind = ChannelKind(entry.scope, entry.target)
        self = .standard(
            instanceID: InstanceID(entry.instanceId), bizType: BizType(entry.bizType), description: entry.description,
            kind: kind)
        if let multiDevice = entry.multiDevice { isMultiDevice = kind.needsUser && multiDevice }
        if let persistent = entry.persistent { isPersistent = kind.isGlobal || persistent }
        if let repush = entry.repush { self.repush = repush }
        if let checkSession = entry.checkSession { checksSession = kind.needsUser && checkSession }
        if let online = entry.online { isOnline = online }
        if let immediate = entry.immediate { isImmediate = immediate }
        verdictLifetime = entry.verdictLifetimeSeconds.map { .seconds($0) }
        subscription = SubscriptionText(
            filter: entry.filter ?? "", attributes: entry.attributes ?? "", parameters: entry.parameters ?? "")
    }
}
