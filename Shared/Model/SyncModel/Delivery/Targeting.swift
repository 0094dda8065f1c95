/// The restriction of an oplog to an operating system, to an inclusive version range (D12), and, in a roll-out, to a
/// share of the devices.
package struct Targeting: Hashable, Sendable {
    package var operatingSystem: OperatingSystem?
    package var minimumVersion: String?
    package var maximumVersion: String?
    package var share: DeviceShare

    package init(
        operatingSystem: OperatingSystem? = nil, minimumVersion: String? = nil, maximumVersion: String? = nil,
        share: DeviceShare = .everyone
    ) {
        self.operatingSystem = operatingSystem
        self.minimumVersion = minimumVersion
        self.maximumVersion = maximumVersion
        self.share = share
    }

    /// No restriction at all.
    package static let everyone = Targeting()

    /// The first rule that excludes the device; nil if it matches.
    package func exclusion(of device: DeviceTraits) -> SkipReason? {
        if share != .everyone, !share.contains(device.slot) { return .share }
        if let operatingSystem, operatingSystem != device.operatingSystem { return .operatingSystem }
        guard minimumVersion != nil || maximumVersion != nil else { return nil }
        guard let version = AppVersion(device.appVersion) else { return .version }
        if let minimum = minimumVersion.flatMap(AppVersion.init), version < minimum { return .version }
        if let maximum = maximumVersion.flatMap(AppVersion.init), maximum < version { return .version }
        return nil
    }
}

/// Why an oplog is skipped for a device for good. The sync point moves past it.
package enum SkipReason: Int16, Hashable, Sendable, CaseIterable {
    /// Restricted to another operating system.
    case operatingSystem = 1
    /// Outside the version range.
    case version = 2
    /// Its validity has ended (D11).
    case expired = 3
    /// Non-persistent, and not sent at once (D6).
    case notStored = 4
    /// The device is outside of the share of the roll-out stage.
    case share = 5

    /// Whether gateways publish a fact about it. The share follows from the device id alone, so a fact for each
    /// excluded device would add nothing.
    package var isRecorded: Bool { self != .share }
}
