import SyncModel

/// A configuration as a form or program gives it; what is absent is as the page preselects it (spec C3).
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
    /// Of the configuration that the form was made from.
    var revision: Int?

    /// For the API's description.
    static let inputs = [
        RouteInput("bizType", required: true, "Sync ID: 1 to 30 letters, digits, '-', '_' or '.'; cannot be changed."),
        RouteInput("description", required: true, "What it is for."),
        RouteInput(
            "scope", "appointed (standard) or global; what is stored stays in the scope that it was pushed with."),
        RouteInput("target", "user (standard) or device; cannot be changed."),
        RouteInput("multiDevice", .flag, "Every device of the user receives; only for users as the target."),
        RouteInput("persistent", .flag, "Stored for those who are offline; always so for global data."),
        RouteInput("repush", "all, or threshold (standard)."),
        RouteInput("threshold", .whole, "Newest oplogs of a backlog, 1 to 1000; standard 100."),
        RouteInput("checkSession", .flag, "User consistency: only to sessions that the tenant calls valid."),
        RouteInput("verdictLifetimeSeconds", .whole, "How old a verdict may be; absent: as the instance says."),
        RouteInput("immediate", .flag, "Global data goes to connected devices at once."),
        RouteInput("filter", "Which oplogs a receiver is sent, by their attributes and its parameters; empty: all."),
        RouteInput("attributes", "What oplogs may say of themselves: region text, price number."),
        RouteInput("parameters", "What a filter may ask of a receiver: region text = \"north\", max number."),
        RouteInput(
            "revision", .whole, "To change one: the revision that was read; refused as STALE when it has changed."),
    ]

    /// The configuration that it describes.
    ///
    /// - Parameter old: the one to be changed; its Sync ID and target stay (spec C4).
    /// - Throws: `wrong`, with the member.
    func configuration(of instanceID: InstanceID, old: SyncConfiguration?) throws(ConsoleFault) -> SyncConfiguration {
        let name = old?.bizType.text ?? (bizType ?? "").trimmed
        guard !name.isEmpty else { throw .wrong("bizType", "fault.missing") }
        // Browsers take these for steps in a path.
        guard name != ".", name != ".." else { throw .wrong("bizType", "fault.dots") }
        let text = (description ?? old?.description ?? "").trimmed
        guard !text.isEmpty else { throw .wrong("description", "fault.missing") }
        guard text.utf16.count <= 200 else { throw .wrong("description", "fault.longerThan", "200") }
        let kind: ChannelKind
        if let old { kind = try changedKind(of: old.kind) } else { kind = try self.kind }
        var configuration = SyncConfiguration(
            instanceID: instanceID, bizType: BizType(name), description: text, kind: kind,
            isMultiDevice: kind == .globalUser || (kind == .user && (multiDevice ?? old?.isMultiDevice ?? true)),
            isPersistent: kind.isGlobal || (persistent ?? old?.isPersistent ?? true), repush: try mode(old),
            checksSession: kind.needsUser && (checkSession ?? old?.checksSession ?? false),
            isOnline: old?.isOnline ?? true, isImmediate: kind.isGlobal && (immediate ?? old?.isImmediate ?? false),
            subscription: SubscriptionText(
                filter: (filter ?? old?.subscription.filter ?? "").trimmed,
                attributes: (attributes ?? old?.subscription.attributes ?? "").trimmed,
                parameters: (parameters ?? old?.subscription.parameters ?? "").trimmed),
            revision: old?.revision ?? 0)
        if !configuration.isPersistent { configuration.repush = .all }
        // A form that checks sessions and leaves the lifetime empty means the instance's.
        if configuration.checksSession, checkSession == nil { configuration.verdictLifetime = old?.verdictLifetime }
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
        // The rest of the rules are the model's; a fault that is left is the Sync ID's.
        if let fault = configuration.fault { throw .refused(fault, field: "bizType") }
        return configuration
    }

    /// The scope may change; a target is not looked at.
    private func changedKind(of kind: ChannelKind) throws(ConsoleFault) -> ChannelKind {
        switch scope {
        case nil: kind
        case "appointed": kind.ofOne
        case "global": kind.ofEverybody
        default: throw .wrong("scope", "fault.choice", "appointed, global")
        }
    }

    private var kind: ChannelKind {
        get throws(ConsoleFault) {
            switch (scope ?? "appointed", target ?? "user") {
            case ("appointed", "user"): .user
            case ("appointed", "device"): .device
            case ("global", "user"): .globalUser
            case ("global", "device"): .globalDevice
            case ("appointed", _), ("global", _): throw .wrong("target", "fault.choice", "user, device")
            default: throw .wrong("scope", "fault.choice", "appointed, global")
            }
        }
    }

    private func mode(_ old: SyncConfiguration?) throws(ConsoleFault) -> RepushMode {
        if let old, repush == nil, threshold == nil { return old.repush }
        switch repush ?? "threshold" {
        case "all": return .all
        case "threshold":
            let newest = threshold ?? Limits.defaultThreshold
            guard (1...1_000).contains(newest) else { throw .wrong("threshold", "fault.range", "1 – 1000") }
            return .threshold(newest)
        default: throw .wrong("repush", "fault.choice", "all, threshold")
        }
    }
}
