import SyncModel

/// A configuration as the API and the pages show it (C2, C3).
struct ConfigurationItem: Encodable, Sendable {
    let bizType: String
    let description: String
    let scope: String
    let target: String
    let multiDevice: Bool
    let persistent: Bool
    /// `all`, or the threshold as a number.
    let repush: String
    let checkSession: Bool
    /// Seconds; absent: the instance's value.
    let verdictLifetimeSeconds: Int64?
    let immediate: Bool
    /// Empty: every receiver is sent every oplog.
    let filter: String
    let attributes: String
    let parameters: String
    let online: Bool
    let revision: Int

    // For pages alone.
    let isGlobal: Bool
    let isUser: Bool
    let isThreshold: Bool
    let threshold: Int
    let hasSubscription: Bool
    let scopeWord: String
    let targetWord: String
    let page: String
    let operatePage: String
    let api: String

    private enum CodingKeys: String, CodingKey {
        case bizType, description, scope, target, multiDevice, persistent, repush, checkSession
        case verdictLifetimeSeconds, immediate, filter, attributes, parameters, online, revision
    }

    init(_ configuration: SyncConfiguration, _ words: PageTexts) {
        let instanceID = configuration.instanceID
        bizType = configuration.bizType.text
        description = configuration.description
        isGlobal = configuration.kind.isGlobal
        isUser = configuration.kind.needsUser
        scope = configuration.kind.scope.rawValue
        target = configuration.kind.target.rawValue
        scopeWord = words.text("scope.\(scope)")
        targetWord = words.text("target.\(target)")
        multiDevice = configuration.isMultiDevice
        persistent = configuration.isPersistent
        checkSession = configuration.checksSession
        verdictLifetimeSeconds = configuration.verdictLifetime?.components.seconds
        immediate = configuration.isImmediate
        filter = configuration.subscription.filter
        attributes = configuration.subscription.attributes
        parameters = configuration.subscription.parameters
        hasSubscription = configuration.subscription != .none
        online = configuration.isOnline
        revision = configuration.revision
        repush = configuration.repush.text
        isThreshold = configuration.repush != .all
        threshold = isThreshold ? configuration.repush.newest : Limits.defaultThreshold
        page = Paths.page(instanceID, "configurations", bizType)
        operatePage = Paths.page(instanceID, "configurations", bizType, "operate")
        api = "/api/v1" + page
    }
}
