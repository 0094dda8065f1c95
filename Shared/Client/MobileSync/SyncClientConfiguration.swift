import Foundation
package import SyncModel

/// The settings of a client: gateway, device, local store and limits.
public struct SyncClientConfiguration: Sendable {
    /// The gateway's host name or address. The gateway's certificate must contain it.
    public var host: String
    /// The gateway's port.
    public var port: Int
    /// The instance: the app in one environment, `<workspaceId>_<appId>`.
    public var instanceID: String
    /// The device id: 1 to 100 characters, the same across launches of the app (K5).
    public var deviceID: String
    /// The secret that belongs to the device id, 16 to 64 random bytes, from a place that survives a re-installation of
    /// the app (`DeviceIdentifier.loadSecret`). Nil, the default, has the client create one and keep it in the local
    /// store. A store that has a secret keeps its own.
    public var deviceSecret: [UInt8]?
    /// The path of the SQLite file with oplogs and sync points. The client creates the file, but not its folder.
    public var storePath: String
    /// The certificate authorities that the client trusts; by default those of the operating system.
    public var trust: SyncTrust
    /// The client certificate for a gateway that requires one; nil by default.
    public var identity: SyncIdentity?
    /// `iOS`, `Android`, or another name. Pushes that are restricted to an operating system do not match another name.
    public var operatingSystemName: String
    /// The version of the operating system; free text.
    public var operatingSystemVersion: String
    /// The version of the app in dotted numbers. Any other form matches no push that is restricted to a version range.
    public var appVersion: String
    /// The longest duration of a connection attempt, including TLS and the gateway's answer; 10 s by default.
    public var connectTimeout: Duration
    /// The wait before an unconfirmed oplog is handed out again, from 1 ms to 1 h. Each later wait is twice as long.
    /// Nil, the default, uses the gateway's value, or 10 s.
    public var firstResend: Duration?

    /// The time for which the connection stays open in the background. Zero ends it at once. Nil, the default, keeps it
    /// open.
    public var backgroundTime: Duration?
    /// The key that encrypts the payloads in the local store: 32 bytes, from the system's key chain and not from the
    /// app's code. Nil, the default, stores payloads in plain form. An unencrypted store is encrypted when it is opened
    /// with a key.
    public var storeKey: [UInt8]?
    /// The largest size of the local store in bytes: at least 1 MB, 100 MB by default. A full store deletes confirmed
    /// oplogs, oldest first. When none is left, the client stores no more data until the app confirms oplogs (K8).
    public var storeLimit: Int
    /// The key that signs the client's connects. Nil, the default, is for instances whose signature switch is off.
    public var appKey: SyncAppKey?
    /// The device's clock. Tests set it wrong.
    package var clock: @Sendable () -> WallTime = Self.systemClock
    /// The cost of a password check, a power of two. Tests use a low one.
    package var loginRounds = PasswordSeal.defaultRounds
    static let systemClock: @Sendable () -> WallTime = {
        WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000))
    }
    /// Called at each step of a synchronisation; the result continues or cancels it. The client calls it on its own
    /// queue, so it must not block. By default every synchronisation continues.
    public var onSynchronize: (@Sendable (SyncStep) -> SyncDecision)?

    /// Creates a configuration. The optional parameters have the defaults that their properties describe.
    public init(
        host: String, port: Int, instanceID: String, deviceID: String, deviceSecret: [UInt8]? = nil, storePath: String,
        trust: SyncTrust = .system, identity: SyncIdentity? = nil, operatingSystemName: String = "",
        operatingSystemVersion: String = "",
        appVersion: String = "", connectTimeout: Duration = .seconds(10), firstResend: Duration? = nil,
        backgroundTime: Duration? = nil, storeKey: [UInt8]? = nil, storeLimit: Int = 100_000_000,
        appKey: SyncAppKey? = nil,
        onSynchronize: (@Sendable (SyncStep) -> SyncDecision)? = nil
    ) {
        self.host = host
        self.port = port
        self.instanceID = instanceID
        self.deviceID = deviceID
        self.deviceSecret = deviceSecret
        self.storePath = storePath
        self.trust = trust
        self.identity = identity
        self.operatingSystemName = operatingSystemName
        self.operatingSystemVersion = operatingSystemVersion
        self.appVersion = appVersion
        self.connectTimeout = connectTimeout
        self.firstResend = firstResend
        self.backgroundTime = backgroundTime
        self.storeKey = storeKey
        self.storeLimit = storeLimit
        self.appKey = appKey
        self.onSynchronize = onSynchronize
    }
    /// Throws `SyncError.invalidArgument` for a value that breaks its limit. The client checks the ids.
    func checkLimits() throws(SyncError) {
        guard (16...64).contains(deviceSecret?.count ?? LocalIdentity.secretBytes) else {
            throw SyncError(.invalidArgument, "deviceSecret must have 16 to 64 bytes")
        }
        guard storeLimit >= 1_000_000 else {
            throw SyncError(.invalidArgument, "storeLimit must be at least 1,000,000 bytes")
        }
    }
}
