public import Foundation
public import MobileSync

/// The app's settings for the compatibility APIs: `meta.config`, data folder, device id and version.
#if canImport(ObjectiveC)
    @objcMembers
#endif
public final class MPSyncApplication: NSObject, Sendable {
    /// The gateway and the app's instance.
    public let metaConfig: MetaConfig
    /// The folder for the device id and the received data. The library creates it when it is missing.
    public let folder: URL
    /// The certificate authorities that the client trusts; nil for `mss-ca.pem` beside `meta.config`, or else those of
    /// the operating system.
    public let trust: SyncTrust?
    /// The device id, if the app has one, such as the id of the vendor's SDK; nil for one that the library makes.
    public let deviceID: String?
    /// The version of the app in dotted numbers, for pushes that are restricted to a version range.
    public let appVersion: String
    /// `iOS`, `Android`, or another name. Pushes that are restricted to an operating system do not match another name.
    public let operatingSystemName: String
    /// The wait before an unconfirmed oplog is handed out again. See `SyncClientConfiguration.firstResend`.
    public let firstResend: Duration?

    /// Creates the settings for an app that names its files itself.
    public init(
        metaConfig: MetaConfig, folder: URL, trust: SyncTrust? = nil, deviceID: String? = nil, appVersion: String = "",
        operatingSystemName: String = MPSyncApplication.thisSystem, firstResend: Duration? = nil
    ) {
        self.metaConfig = metaConfig
        self.folder = folder
        self.trust = trust
        self.deviceID = deviceID
        self.appVersion = appVersion
        self.operatingSystemName = operatingSystemName
        self.firstResend = firstResend
    }

    /// Creates the settings for an Objective-C app that names its files itself.
    ///
    /// - Parameters:
    ///   - metaConfigFile: `meta.config`. A file `mss-ca.pem` beside it is the certificate authority.
    ///   - folder: the folder for the device id and the received data.
    ///   - deviceId: nil for an id that the library makes.
    /// - Returns: nil when `metaConfigFile` is missing or invalid; the reason is logged.
    public convenience init?(metaConfigFile: URL, folder: URL, deviceId: String?) {
        guard let metaConfig = CompatibilityCore.shared.readMetaConfig(metaConfigFile) else { return nil }
        self.init(metaConfig: metaConfig, folder: folder, deviceID: deviceId, appVersion: Self.mainVersion)
    }

    /// Returns the settings of the running application: `meta.config` from its resources or beside its executable, a
    /// data folder in the user's application support folder, and the version from its property list.
    ///
    /// - Throws: `SyncError.invalidArgument` when `meta.config` is missing or invalid.
    #if canImport(ObjectiveC)
        @nonobjc
    #endif
    public static func main() throws(SyncError) -> MPSyncApplication {
        let bundle = Bundle.main
        let file = (bundle.resourceURL ?? bundle.bundleURL).appending(path: "meta.config")
        let identifier = bundle.bundleIdentifier ?? bundle.executableURL?.lastPathComponent ?? "app"
        let folders = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
        return MPSyncApplication(
            metaConfig: try MetaConfig(contentsOf: file),
            folder: (folders.first ?? bundle.bundleURL).appending(path: identifier).appending(path: "mobile-sync"),
            appVersion: mainVersion)
    }

    private static var mainVersion: String {
        Bundle.main.object(forInfoDictionaryKey: "CFBundleShortVersionString") as? String ?? ""
    }

    /// The guide's name of the operating system for which this code is compiled; empty for other systems than iOS and
    /// Android.
    public static var thisSystem: String {
        #if os(iOS)
            "iOS"
        #elseif os(Android)
            "Android"
        #else
            ""
        #endif
    }

    /// The file of the local store. Each instance has its own, because a store of another environment would be refused.
    var store: URL {
        let name = metaConfig.instanceID.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        return folder.appending(path: "\(name).sqlite")
    }

    /// Returns the app's device id, or else the one of the folder, which the first call creates.
    ///
    /// - Throws: `SyncError.store`.
    func loadDeviceID() throws(SyncError) -> String {
        prepareFolder()
        if let deviceID { return deviceID }
        return try DeviceIdentifier.load(from: folder)
    }

    /// Creates the folder. An error appears at the first write into it.
    private func prepareFolder() {
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        #if canImport(Darwin)
            // A restored backup would give two devices the same device id. Not tested: the tests run on Linux.
            var (folder, values) = (folder, URLResourceValues())
            values.isExcludedFromBackup = true
            try? folder.setResourceValues(values)
        #endif
    }
}
