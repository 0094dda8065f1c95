import SyncModel

/// The devices and the answered channels of each audience: a user, a device, all users or all devices.
struct AudienceIndex: Sendable {
    private var devicesByAudience: [HistoryTarget: Set<String>] = [:]
    private var channelsByAudience: [HistoryTarget: Set<HistoryTarget>] = [:]

    /// The audiences that a device with this user belongs to.
    static func audiences(of device: String, _ instance: String, _ user: String?) -> [HistoryTarget] {
        func audience(_ kind: ChannelKind, _ target: String) -> HistoryTarget {
            HistoryTarget(instance: instance, kind: kind, target: target, bizType: "")
        }
        let own = [audience(.device, device), audience(.globalDevice, "")]
        return own + (user.map { [audience(.user, $0), audience(.globalUser, "")] } ?? [])
    }

    /// The devices that a channel is for.
    func devices(of channel: HistoryTarget) -> Set<String> { devicesByAudience[channel.audience] ?? [] }

    /// The channels that are for these audiences.
    func channels(of audiences: [HistoryTarget]) -> [HistoryTarget] {
        audiences.flatMap { channelsByAudience[$0] ?? [] }
    }

    mutating func insert(channel: HistoryTarget) {
        channelsByAudience[channel.audience, default: []].insert(channel)
    }

    mutating func insert(_ device: String, into audiences: [HistoryTarget]) {
        for audience in audiences { devicesByAudience[audience, default: []].insert(device) }
    }

    mutating func remove(_ device: String, from audiences: [HistoryTarget]) {
        for audience in audiences { devicesByAudience[audience]?.remove(device) }
    }
}
