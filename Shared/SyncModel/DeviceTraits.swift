/// The operating systems that a push can be restricted to (spec H2); others match only unrestricted oplogs.
package enum OperatingSystem: Int16, Sendable, CaseIterable {
    case iOS = 1
    case android = 2

    /// Reads the name in any case; nil for every other system.
    package init?(name: String) {
        switch name.lowercased() {
        case "ios": self = .iOS
        case "android": self = .android
        default: return nil
        }
    }
}

/// What a device says of itself and targeting looks at.
package struct DeviceTraits: Hashable, Sendable {
    /// Nil for a system that no push can name.
    package var operatingSystem: OperatingSystem?
    /// As the app reports it; may be of no comparable form.
    package var appVersion: String
    /// Where its id falls.
    package var slot: DeviceSlot

    /// The version under which figures count the device: apps say what they like, so only one that can be compared and
    /// is no longer than `Limits.countedVersionBytes`; otherwise empty.
    package var countedVersion: String {
        appVersion.utf8.count <= Limits.countedVersionBytes && AppVersion(appVersion) != nil ? appVersion : ""
    }

    package init(operatingSystem: OperatingSystem?, appVersion: String, slot: DeviceSlot) {
        self.operatingSystem = operatingSystem
        self.appVersion = appVersion
        self.slot = slot
    }
}
