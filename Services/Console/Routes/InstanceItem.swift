import SyncModel

/// An instance as the API and the pages show it (C8, C13).
struct InstanceItem: Encodable, Sendable {
    /// A live key, without its secret.
    struct Key: Encodable, Sendable {
        let id: String
        let purpose: String
        let requestsPerSecond: Int?
        let pushesPerDay: Int?
        let createdAt: Int64

        // For pages alone.
        let purposeWord: String
        let created: String
        let api: String

        private enum CodingKeys: String, CodingKey { case id, purpose, requestsPerSecond, pushesPerDay, createdAt }
    }

    let instanceId: String
    let name: String
    let enabled: Bool
    let requiresSignature: Bool
    let bindsDevices: Bool
    /// Every bind makes its device the owner of single-device data, not only a bind that the app requested.
    let latestConnectionOwns: Bool
    let validatorUrl: String
    /// The tenant's address for device operations; empty: they are refused.
    let relayUrl: String
    /// `http` or `mgs`.
    let validatorMode: String
    let gatewayAppId: String?
    let gatewayWorkspaceId: String?
    let gatewayWrapsBody: Bool
    let verdictLifetimeSeconds: Int64
    let retentionDays: Int64
    let sessionLength: Int
    /// The limits of calls without a key.
    let requestsPerSecond: Int?
    let pushesPerDay: Int?
    let keys: [Key]
    let revision: Int

    // For pages alone.
    let isMobileGateway: Bool
    let page: String
    let servicePage: String
    let api: String

    private enum CodingKeys: String, CodingKey {
        case instanceId, name, enabled, requiresSignature, bindsDevices, latestConnectionOwns, validatorUrl, relayUrl
        case validatorMode
        case gatewayAppId, gatewayWorkspaceId, gatewayWrapsBody, verdictLifetimeSeconds, retentionDays, sessionLength
        case requestsPerSecond, pushesPerDay, keys, revision
    }

    init(_ instance: Instance, _ words: PageTexts) {
        var gateway: ValidatorForm.MobileGateway?
        if case .mobileGateway(let its) = instance.validatorForm { gateway = its }
        instanceId = instance.id.text
        name = instance.name
        enabled = instance.isEnabled
        requiresSignature = instance.requiresSignature
        bindsDevices = instance.bindsDevices
        latestConnectionOwns = instance.latestConnectionOwns
        validatorUrl = instance.validatorURL
        relayUrl = instance.relayURL
        isMobileGateway = gateway != nil
        validatorMode = gateway == nil ? "http" : "mgs"
        gatewayAppId = gateway?.appID
        gatewayWorkspaceId = gateway?.workspaceID
        gatewayWrapsBody = gateway?.wrapsBody ?? false
        verdictLifetimeSeconds = instance.verdictLifetime.components.seconds
        retentionDays = instance.retention.components.seconds / 86_400
        sessionLength = instance.sessionUnits
        requestsPerSecond = instance.limits.requestsPerSecond
        pushesPerDay = instance.limits.pushesPerDay
        revision = instance.revision
        page = Paths.page(instance.id, "overview")
        servicePage = Paths.page(instance.id, "service")
        api = "/api/v1" + Paths.page(instance.id)
        let api = api
        keys = instance.keys.sorted { ($0.purpose.rawValue, $0.createdAt) < ($1.purpose.rawValue, $1.createdAt) }.map {
            Key(
                id: $0.id, purpose: $0.purpose.word, requestsPerSecond: $0.limits.requestsPerSecond,
                pushesPerDay: $0.limits.pushesPerDay, createdAt: $0.createdAt.milliseconds,
                purposeWord: words.text("purpose.\($0.purpose.word)"), created: $0.createdAt.text,
                api: "\(api)/keys/\($0.id)")
        }
    }
}
