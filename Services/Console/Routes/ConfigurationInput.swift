import SyncModel

/// A configuration from a form or a program. Absent members keep their value, or get the page's preselection in a new
/// configuration (C3).
struct ConfigurationInput: Decodable, Sendable {
    var bizType: String?
    var description: String?
    var scope: String?
    var target: String?
    var multiDevice: Bool?
    var persistent: Bool?
    /// `all` or `threshold`.
    var repush: String?
    var threshold: Int?
    var checkSession: Bool?
    var verdictLifetimeSeconds: Int?
    var immediate: Bool?
    var filter: String?
    var attributes: String?
    var parameters: String?
    /// The revision that the caller has read.
    var revision: Int?

    /// For the API's description.
    static let inputs = [
        RouteInput("bizType", required: true, "Sync ID: 1 to 30 letters, digits, '-', '_' or '.'; cannot be changed."),
        RouteInput("description", required: true, "The purpose of the configuration."),
        RouteInput(
            "scope", "appointed (default) or global; stored data keeps the scope that it was pushed with."),
        RouteInput("target", "user (default) or device; cannot be changed."),
        RouteInput("multiDevice", .flag, "Every device of the user receives the data; only with users as the target."),
        RouteInput("persistent", .flag, "The data is stored for offline receivers; always true for global data."),
        RouteInput("repush", "all, or threshold (default)."),
        RouteInput("threshold", .whole, "Newest oplogs of a backlog, 1 to 1000; default 100."),
        RouteInput(
            "checkSession", .flag, "User consistency: only for user sessions with a valid verdict of the tenant."),
        RouteInput("verdictLifetimeSeconds", .whole, "The longest age of a verdict; absent: the instance's value."),
        RouteInput("immediate", .flag, "Global data goes to connected devices at once."),
        RouteInput(
            "filter", "The condition on attributes and parameters for oplogs that a receiver is sent; empty: all."),
        RouteInput("attributes", "The declared attributes of oplogs, such as: region text, price number."),
        RouteInput(
            "parameters", "The declared parameters of receivers, such as: region text = \"north\", max number."),
        RouteInput(
            "revision", .whole, "For a change: the revision that was read; STALE when it has changed."),
    ]

    /// The configuration that the input describes.
    ///
    /// - Parameter old: the configuration to change; its Sync ID and target stay (C4).
    /// - Throws: `wrong` or `refused`, with the member.
    func configuration(of instanceID: InstanceID, old: SyncConfiguration?) throws(ConsoleFault) -> SyncConfiguration {
        let name = old?.bizType.text ?? (bizType ?? "").trimmed
        guard !name.isEmpty else { throw .wrong("bizType", "fault.missing") }
        // Browsers resolve these as path segments.
        guard name != ".", name != ".." else { throw .wrong("bizType", "fault.dots") }
        let kind = try kind(old)
        let base = old ?? .standard(instanceID: instanceID, bizType: BizType(name), kind: kind)
        let text = (description ?? base.description).trimmed
        guard !text.isEmpty else { throw .wrong("description", "fault.missing") }
        guard text.utf16.count <= 200 else { throw .wrong("description", "fault.longerThan", "200") }
        var configuration = SyncConfiguration(
            instanceID: instanceID, bizType: BizType(name), description: text, kind: kind,
            isMultiDevice: kind == .globalUser || (kind == .user && (multiDevice ?? base.isMultiDevice)),
            isPersistent: kind.isGlobal || (persistent ?? base.isPersistent), repush: try mode(base.repush),
            checksSession: kind.needsUser && (checkSession ?? base.checksSession),
            isOnline: base.isOnline, isImmediate: kind.isGlobal && (immediate ?? base.isImmediate),
            subscription: SubscriptionText(
                filter: (filter ?? base.subscription.filter).trimmed,
                attributes: (attributes ?? base.subscription.attributes).trimmed,
                parameters: (parameters ?? base.subscription.parameters).trimmed),
            revision: base.revision)
        if !configuration.isPersistent { configuration.repush = .all }
        // A form with the session check on and an empty lifetime means the instance's lifetime.
        if configuration.checksSession, checkSession == nil { configuration.verdictLifetime = base.verdictLifetime }
        if configuration.checksSession, let seconds = verdictLifetimeSeconds {
            guard (0...Int(Limits.longestVerdictLifetime.components.seconds)).contains(seconds) else {
                throw .wrong(
                    "verdictLifetimeSeconds", "fault.range", "0 – \(Limits.longestVerdictLifetime.components.seconds)")
            }
            configuration.verdictLifetime = .seconds(Int64(seconds))
        }
        if let fault = configuration.subscriptionFault {
            let part = ["attributes", "parameters"].first { fault.hasPrefix($0) } ?? "filter"
            throw .refused(fault, field: part)
        }
        // The model checks the remaining rules; at this point only the Sync ID can break one.
        if let fault = configuration.fault { throw .refused(fault, field: "bizType") }
        return configuration
    }

    /// The kind of the input. For an old configuration its target cannot change and is ignored.
    private func kind(_ old: SyncConfiguration?) throws(ConsoleFault) -> ChannelKind {
        let scope = scope.map { ChannelKind.Scope(rawValue: $0) } ?? old?.kind.scope ?? .appointed
        guard let scope else { throw .wrong("scope", "fault.choice", "appointed, global") }
        if let old { return old.kind.with(scope) }
        guard let target = ChannelKind.Target(rawValue: target ?? "user") else {
            throw .wrong("target", "fault.choice", "user, device")
        }
        return ChannelKind(scope, target)
    }

    private func mode(_ base: RepushMode) throws(ConsoleFault) -> RepushMode {
        if repush == nil, threshold == nil { return base }
        switch repush ?? "threshold" {
        case "all": return .all
        case "threshold":
            let newest = threshold ?? Limits.defaultThreshold
            guard RepushMode.thresholds.contains(newest) else { throw .wrong("threshold", "fault.range", "1 – 1000") }
            return .threshold(newest)
        default: throw .wrong("repush", "fault.choice", "all, threshold")
        }
    }
}
