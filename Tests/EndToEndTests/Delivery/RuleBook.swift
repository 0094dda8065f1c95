/// The delivery rules in their simplest form: one list per channel, one position per receiver, no processes, no
/// messages, no clocks. The running system is compared with it (D6–D10, D12, D17, D18, H1).
struct RuleBook {
    /// A sync configuration.
    struct Rules {
        var isForDevices = false
        var isMultiDevice = true
        var isPersistent = true
        /// The number of newest entries of a backlog; nil: all.
        var threshold: Int?
        var isOnline = true
    }

    struct Channel: Hashable {
        let bizType: String
        /// The user or device.
        let target: String
    }

    struct Entry {
        let key: String
        /// The operating system that the entry is restricted to; nil: none.
        let system: String?
        var isStored: Bool
    }

    struct Device {
        let name: String
        let system: String
        var user: String?
        var isConnected = false
        /// Entries of a channel that the store has, or that were left out for it, counted from the channel's beginning.
        var positions: [Channel: Int] = [:]
        /// Keys that the app of this installation has received, in order.
        var shown: [Channel: [String]] = [:]
    }

    private(set) var rules: [String: Rules]
    private(set) var channels: [Channel: [Entry]] = [:]
    /// The positions that all installations of a user or a device share.
    private(set) var sharedPositions: [Channel: Int] = [:]
    private(set) var owners: [String: Int] = [:]
    private(set) var devices: [Device]

    init(rules: [String: Rules], devices: [Device]) {
        self.rules = rules
        self.devices = devices
    }

    // MARK: Operations

    /// Pushes one entry. Returns the expected API code.
    mutating func push(_ bizType: String, to target: String, key: String, system: String?) -> String {
        guard let rule = rules[bizType], rule.isOnline else { return "BIZ_NOT_ONLINE" }
        let channel = Channel(bizType: bizType, target: target)
        if channels[channel]?.contains(where: { $0.key == key }) == true { return "DUPLICATED_BIZ_ID" }
        let entry = Entry(key: key, system: system, isStored: rule.isPersistent)
        channels[channel, default: []].append(entry)
        var isOnline = false
        for index in devices.indices where receives(index, channel) {
            if matches(index, entry) {
                devices[index].shown[channel, default: []].append(key)
                isOnline = true
            }
            moveToEnd(index, channel)
        }
        return isOnline ? "SUCCESS" : "NOT_ONLINE"
    }

    /// Ends the validity of an entry: no device receives it any more.
    mutating func expire(_ key: String, of channel: Channel) {
        for index in channels[channel, default: []].indices where channels[channel]?[index].key == key {
            channels[channel]?[index].isStored = false
        }
    }

    /// Connects a device and binds this user; nil: no user.
    mutating func connect(_ index: Int, user: String?) {
        devices[index].isConnected = true
        bind(index, user: user)
    }

    /// Binds another user, or no user, on an open connection.
    mutating func bind(_ index: Int, user: String?) {
        devices[index].user = user
        if let user { owners[user] = index }
        for channel in channels.keys { sendBacklog(of: channel, to: index) }
    }

    mutating func disconnect(_ index: Int) { devices[index].isConnected = false }

    /// Re-installs the app: the device gets an empty store.
    mutating func reinstall(_ index: Int) {
        devices[index].positions = [:]
        devices[index].shown = [:]
    }

    /// Sets a configuration online or offline.
    mutating func setOnline(_ isOnline: Bool, _ bizType: String) {
        rules[bizType]?.isOnline = isOnline
        guard isOnline else { return }
        for channel in channels.keys where channel.bizType == bizType {
            for index in devices.indices { sendBacklog(of: channel, to: index) }
        }
    }

    // MARK: Rules

    /// Whether the device is connected, the configuration is online, and the device may receive the channel: as the
    /// user's device, as the device itself, or as the owner of single-device data.
    private func receives(_ index: Int, _ channel: Channel) -> Bool {
        let device = devices[index]
        guard device.isConnected, let rule = rules[channel.bizType], rule.isOnline else { return false }
        if rule.isForDevices { return device.name == channel.target }
        guard device.user == channel.target else { return false }
        return rule.isMultiDevice || owners[channel.target] == index
    }

    private func matches(_ index: Int, _ entry: Entry) -> Bool {
        entry.system == nil || entry.system == devices[index].system
    }

    private func isShared(_ channel: Channel) -> Bool {
        guard let rule = rules[channel.bizType] else { return false }
        return rule.isForDevices || !rule.isMultiDevice
    }

    private mutating func sendBacklog(of channel: Channel, to index: Int) {
        guard receives(index, channel), let entries = channels[channel] else { return }
        let start = (isShared(channel) ? sharedPositions[channel] : devices[index].positions[channel]) ?? 0
        var backlog = entries[start...].filter { $0.isStored && matches(index, $0) }
        if let threshold = rules[channel.bizType]?.threshold { backlog = backlog.suffix(threshold) }
        devices[index].shown[channel, default: []] += backlog.map(\.key)
        moveToEnd(index, channel)
    }

    private mutating func moveToEnd(_ index: Int, _ channel: Channel) {
        let end = channels[channel]?.count ?? 0
        if isShared(channel) { sharedPositions[channel] = end } else { devices[index].positions[channel] = end }
    }
}
