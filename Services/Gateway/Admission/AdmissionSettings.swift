import ServiceKit
import SyncModel

/// Settings of the admission limits; `AdmissionLimits` explains each.
enum AdmissionSettings {
    private static let standard = AdmissionLimits()

    private static func rate(_ name: String, _ standard: Int) -> SettingKey<Int> {
        .integer("MSS_GATEWAY_\(name)_PER_SECOND", in: 1...1_000_000, default: standard)
    }

    static let sourceConnections = rate("SOURCE_CONNECTIONS", standard.sourceConnections)
    static let suspectHandshakes = rate("SUSPECT_HANDSHAKES", standard.suspectHandshakes)
    static let lateness = SettingKey<Int>.integer(
        "MSS_GATEWAY_LATENESS_MAX_MILLISECONDS", in: 1...60_000, default: Int(standard.lateness.wholeMilliseconds))
    static let unconnected = SettingKey<Int>.integer(
        "MSS_GATEWAY_UNCONNECTED_MAX", in: 1...1_000_000, default: standard.unconnected)
    static let appConnects = rate("APP_CONNECTS", standard.appConnects)
    static let appRequests = rate("APP_REQUESTS", standard.appRequests)
    static let appChanges = rate("APP_CHANGES", standard.appChanges)
    static let userBinds = rate("USER_BINDS", standard.userBinds)
    static let deviceFrames = rate("DEVICE_FRAMES", standard.deviceFrames)
    static let deviceRequests = rate("DEVICE_REQUESTS", standard.deviceRequests)
    static let deviceChanges = rate("DEVICE_CHANGES", standard.deviceChanges)

    /// Balancers that send the source of each connection by PROXY protocol, version 1 or 2.
    static let trustedProxies = SettingKey<[String]>.list(
        "MSS_GATEWAY_TRUSTED_PROXIES",
        "addresses or networks of balancers whose connections all begin with a PROXY protocol header, comma-separated",
        example: "10.0.0.2,10.1.0.0/24"
    ) { IPRange($0) != nil }

    static let keys =
        [
            sourceConnections, suspectHandshakes, lateness, unconnected, appConnects, appRequests, appChanges,
            userBinds, deviceFrames, deviceRequests, deviceChanges,
        ].map(\.erased) + [trustedProxies.erased]

    /// The limits from the settings.
    static func limits(_ settings: Settings) -> AdmissionLimits {
        AdmissionLimits(
            sourceConnections: settings[sourceConnections], suspectHandshakes: settings[suspectHandshakes],
            lateness: .milliseconds(settings[lateness]), unconnected: settings[unconnected],
            appConnects: settings[appConnects], appRequests: settings[appRequests], appChanges: settings[appChanges],
            userBinds: settings[userBinds], deviceFrames: settings[deviceFrames],
            deviceRequests: settings[deviceRequests], deviceChanges: settings[deviceChanges],
            trustedProxies: settings[trustedProxies].compactMap { IPRange($0) })
    }
}
