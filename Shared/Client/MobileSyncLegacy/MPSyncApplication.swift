public import Foundation
public import MobileSync

/// The app's settings for the compatibility APIs: `meta.config`, data folder and version.
public struct MPSyncApplication: Sendable {
    /// The gateway and the app's instance.
    public var metaConfig: MetaConfig
    /// The folder for the device id and the received data. The library creates it when it is missing.
    public var folder: URL
    /// The certificate authorities that the client trusts; by default those of the operating system.
    public var trust: SyncTrust
    /// The version of the app in dotted numbers, for pushes that are restricted to a version range.
    public var appVersion: String
    /// `iOS`, `Android`, or another name. Pushes that are restricted to an operating system do not match another name.
    public var operatingSystemName: String
    /// The wait before an unconfirmed oplog is handed out again. See `SyncClientConfiguration.firstResend`.
    public var firstResend: Duration?

    /// Creates the settings for an app that names its files itself.
    public init(
        metaConfig: MetaConfig, folder: URL, trust: SyncTrust = .system, appVersion: String = "",
        operatingSystemName: String = Self.thisSystem, firstResend: Duration? = nil
    ) {
        self.metaConfig = metaConfig
        self.folder = folder
        self.trust = trust
        self.appVersion = appVersion
        self.operatingSystemName = operatingSystemName
        self.firstResend = firstResend
    }

    /// Returns the settings of the running application: `meta.config` from its resources or beside its executable, a
    /// data folder in the user's application support folder, and the version from its property list.
    ///
    /// - Throws: `SyncError.invalidArgument` when `meta.config` is missing or invalid.
    public static func main() throws(SyncError) -> MPSyncApplication {
        let bundle = Bundle.main
        let file = (bundle.resourceURL ?? bundle.bundleURL).appending(path: "meta.config")
        let identifier = bundle.bundleIdentifier ?? bundle.executableURL?.lastPathComponent ?? "app"
        let folders = FileManager.default.urls(for: .applicationSupportDirectory, in: .userDomainMask)
        return MPSyncApplication(
            metaConfig: try MetaConfig(contentsOf: file),
            folder: (folders.first ?? bundle.bundleURL).appending(path: identifier).appending(path: "mobile-sync"),
            appVersion: bundle.object(forInfoDictionaryKey: "CFBundleShortVersionString") as? String ?? "")
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
}
