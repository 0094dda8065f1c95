/// Restriction of one oplog to an operating system and an inclusive version range (spec D12), and, as a stage of a
/// roll-out, to a share of the devices.
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

    /// Nil when the device matches, otherwise the first rule that excludes it.
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

/// Why an oplog is passed over for one device for good, its sync point moving past it.
package enum SkipReason: Int16, Hashable, Sendable, CaseIterable {
    /// Restricted to another operating system.
    case operatingSystem = 1
    /// Outside the version range.
    case version = 2
    /// Its validity has ended (spec D11).
    case expired = 3
    /// Non-persistent and not taken live (spec D6).
    case notStored = 4
    /// The device is not of the share that a roll-out's stage goes to.
    case share = 5

    /// Whether gateways tell the statistics of it. The share is known from the device id alone: a record for each device
    /// that a small stage leaves out would say nothing, a million times.
    package var isRecorded: Bool { self != .share }
}
