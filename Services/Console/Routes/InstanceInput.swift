import SyncModel

/// Settings of an instance from a form or a program. Absent members keep their value, or get the default in a new
/// instance.
struct InstanceInput: Decodable, Sendable {
    var instanceId: String?
    var name: String?
    var requiresSignature: Bool?
    var bindsDevices: Bool?
    var latestConnectionOwns: Bool?
    var validatorUrl: String?
    var relayUrl: String?
    var validatorMode: String?
    var gatewayAppId: String?
    var gatewayWorkspaceId: String?
    var gatewayWrapsBody: Bool?
    var verdictLifetimeSeconds: Int?
    var retentionDays: Int?
    var sessionLength: Int?
    /// 0: no limit.
    var requestsPerSecond: Int?
    /// 0: no limit.
    var pushesPerDay: Int?
    var revision: Int?
    /// Only for a new instance: also creates a device key.
    var appKey: Bool?

    /// For the API's description.
    static let inputs = [
        RouteInput("name", "The name, for people."),
        RouteInput("requiresSignature", .flag, "Backend calls and device connects must be signed."),
        RouteInput("bindsDevices", .flag, "A device id is bound to the secret of its first registration."),
        RouteInput(
            "latestConnectionOwns", .flag,
            "Every bind makes its device the owner of single-device data, not only a bind that the app requested."),
        RouteInput("validatorUrl", "The tenant's address for session checks; empty: no check can succeed."),
        RouteInput("relayUrl", "The tenant's address for device operations; empty: they are refused."),
        RouteInput("validatorMode", "http (default), or mgs: through an mPaaS mobile gateway."),
        RouteInput("gatewayAppId", "With mgs."), RouteInput("gatewayWorkspaceId", "With mgs."),
        RouteInput("gatewayWrapsBody", .flag, "With mgs: the request is a member _requestBody."),
        RouteInput("verdictLifetimeSeconds", .whole, "The longest age of a valid verdict; default 600."),
        RouteInput("retentionDays", .whole, "The longest time that data is kept, 1 to 30; default 30."),
        RouteInput("sessionLength", .whole, "The longest session id in characters, 100 to 4096."),
        RouteInput("requestsPerSecond", .whole, "Calls without a key; 0: no limit."),
        RouteInput("pushesPerDay", .whole, "Pushes without a key; 0: no limit."),
        RouteInput("revision", .whole, "For a change: the revision that was read."),
    ]

    /// The instance that the input describes.
    ///
    /// - Throws: `wrong` or `refused`, with the member.
    func instance(_ old: Instance?) throws(ConsoleFault) -> Instance {
        let id = old?.id.text ?? (instanceId ?? "").trimmed
        guard !id.isEmpty else { throw .wrong("instanceId", "fault.missing") }
        guard id.utf16.count <= Limits.linkTokenUnits, !id.utf8.contains(0) else {
            throw .wrong("instanceId", "fault.noInstanceID")
        }
        var instance =
            old
            ?? Instance(
                id: InstanceID(id), name: id, isEnabled: true, validatorURL: "", verdictLifetime: .seconds(600))
        if let name = name?.trimmed, !(name.isEmpty && old == nil) { instance.name = name }
        guard (1...100).contains(instance.name.utf16.count) else { throw .wrong("name", "fault.longerThan", "100") }
        if let requiresSignature { instance.requiresSignature = requiresSignature }
        if let bindsDevices { instance.bindsDevices = bindsDevices }
        if let latestConnectionOwns { instance.latestConnectionOwns = latestConnectionOwns }
        if let url = try Self.url(validatorUrl, "validatorUrl") { instance.validatorURL = url }
        if let url = try Self.url(relayUrl, "relayUrl") { instance.relayURL = url }
        instance.validatorForm = try form(instance.validatorForm)
        if let seconds = verdictLifetimeSeconds {
            let most = Int(Limits.longestVerdictLifetime.components.seconds)
            guard (0...most).contains(seconds) else {
                throw .wrong("verdictLifetimeSeconds", "fault.range", "0 – \(most)")
            }
            instance.verdictLifetime = .seconds(seconds)
        }
        if let days = retentionDays {
            guard (1...30).contains(days) else { throw .wrong("retentionDays", "fault.range", "1 – 30") }
            instance.retention = .seconds(days * 86_400)
        }
        if let sessionLength { instance.sessionUnits = sessionLength }
        if let requestsPerSecond {
            instance.limits.requestsPerSecond = requestsPerSecond == 0 ? nil : requestsPerSecond
        }
        if let pushesPerDay { instance.limits.pushesPerDay = pushesPerDay == 0 ? nil : pushesPerDay }
        if let fault = instance.fault { throw .refused(fault) }
        return instance
    }

    /// A checked URL; nil when the member is absent.
    private static func url(_ text: String?, _ member: String) throws(ConsoleFault) -> String? {
        guard let url = text?.trimmed else { return nil }
        guard url.isEmpty || url.hasPrefix("https://") || url.hasPrefix("http://") else {
            throw .wrong(member, "fault.url")
        }
        return url
    }

    private func form(_ old: ValidatorForm) throws(ConsoleFault) -> ValidatorForm {
        var gateway = ValidatorForm.MobileGateway(appID: "", workspaceID: "")
        if case .mobileGateway(let its) = old { gateway = its }
        switch validatorMode {
        case nil: return old
        case "http": return .http
        case "mgs":
            gateway.appID = gatewayAppId?.trimmed ?? gateway.appID
            gateway.workspaceID = gatewayWorkspaceId?.trimmed ?? gateway.workspaceID
            gateway.wrapsBody = gatewayWrapsBody ?? gateway.wrapsBody
            guard !gateway.appID.isEmpty else { throw .wrong("gatewayAppId", "fault.missing") }
            guard !gateway.workspaceID.isEmpty else { throw .wrong("gatewayWorkspaceId", "fault.missing") }
            return .mobileGateway(gateway)
        default: throw .wrong("validatorMode", "fault.choice", "http, mgs")
        }
    }
}
