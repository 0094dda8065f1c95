public import Foundation
public import MobileSync

/// What the guide's faces take from the platform: the app's `meta.config`, its data folder and its version.
public struct MPSyncApplication: Sendable {
    /// Where the service is, and which instance the app belongs to.
    public var metaConfig: MetaConfig
    /// Keeps the device id and the received data; created when it is missing.
    public var folder: URL
    /// Whose certificates are believed; the operating system's by default.
    public var trust: SyncTrust
    /// Dotted numbers, for pushes that are restricted to a version range.
    public var appVersion: String
    /// `iOS`, `Android`, or another name, which matches only pushes without a restriction.
    public var operatingSystemName: String
    /// See `SyncClientConfiguration.firstResend`.
    public var firstResend: Duration?

    /// An application whose files are where it says.
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

    /// The running application: `meta.config` among its resources, or beside the executable; its data in the user's
    /// folder for such things; its version from its property list.
    ///
    /// - Throws: `SyncError.invalidArgument` when there is no `meta.config`, or it is wrong.
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

    /// The guide's name of the operating system that this is compiled for.
    public static var thisSystem: String {
        #if os(iOS)
            "iOS"
        #elseif os(Android)
            "Android"
        #else
            ""
        #endif
    }

    /// The store's file. Each instance has its own, so that a build for another environment does not meet a strange one.
    var store: URL {
        let name = metaConfig.instanceID.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        return folder.appending(path: "\(name).sqlite")
    }
}
