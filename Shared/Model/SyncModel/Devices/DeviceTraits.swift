/// The operating systems that a push can be restricted to (H2); others match only unrestricted oplogs.
package enum OperatingSystem: Int16, Sendable, CaseIterable {
    case iOS = 1
    case android = 2

    /// Reads the name without regard to case; nil for every other system.
    package init?(name: String) {
        switch name.lowercased() {
        case "ios": self = .iOS
        case "android": self = .android
        default: return nil
        }
    }
}

/// The attributes of a device that targeting reads.
package struct DeviceTraits: Hashable, Sendable {
    /// The value is nil for a system that a push cannot name.
    package var operatingSystem: OperatingSystem?
    /// As the app reports it; it may not be comparable.
    package var appVersion: String
    /// The slot of the device id.
    package var slot: DeviceSlot

    /// The version for figures. Apps report any text, so this is empty unless the version is comparable and no longer
    /// than `Limits.countedVersionBytes`.
    package var countedVersion: String {
        appVersion.utf8.count <= Limits.countedVersionBytes && AppVersion(appVersion) != nil ? appVersion : ""
    }

    package init(operatingSystem: OperatingSystem?, appVersion: String, slot: DeviceSlot) {
        self.operatingSystem = operatingSystem
        self.appVersion = appVersion
        self.slot = slot
    }
}
