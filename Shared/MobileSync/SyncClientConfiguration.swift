import Foundation
package import SyncModel

/// What a client needs to know to connect and to keep what it receives.
public struct SyncClientConfiguration: Sendable {
    /// The gateway's name or address; it must be in the gateway's certificate.
    public var host: String
    /// The gateway's port.
    public var port: Int
    /// The app and environment, `<workspaceId>_<appId>`.
    public var instanceID: String
    /// This device; stable across launches of the app, 1 to 100 characters (spec K5).
    public var deviceID: String
    /// The SQLite file that keeps oplogs and sync points; created when it is missing, in a folder that exists.
    public var storePath: String
    /// Whose certificates are believed; the operating system's by default.
    public var trust: SyncTrust
    /// Shown to a gateway that asks devices for a certificate; nil, the default, where none asks.
    public var identity: SyncIdentity?
    /// `iOS`, `Android`, or another name, which matches only pushes without a restriction.
    public var operatingSystemName: String
    /// Free text.
    public var operatingSystemVersion: String
    /// Dotted numbers; any other form matches no push that is restricted to a version range.
    public var appVersion: String
    /// How long a connection attempt may take, TLS and the first answer included; 10 s by default.
    public var connectTimeout: Duration
    /// How long after an oplog was handed out it is handed out again when it was not confirmed; later waits are twice
    /// as long each. From 1 ms to 1 h; nil, the default, is what the gateway says, or else 10 s.
    public var firstResend: Duration?

    /// How long the connection is kept in the background; zero ends it at once, nil, the default, keeps it for good.
    public var backgroundTime: Duration?
    /// Encrypts the payloads in the local store: 32 bytes, from the system's key chain and not from the app's code.
    /// Nil, the default: they are stored as they are. A store that was not encrypted is when it is opened with a key.
    public var storeKey: [UInt8]?
    /// Bytes that the local store may take, 1 MB or more; 100 MB by default. When it is full, what is confirmed goes
    /// first, oldest first; when nothing confirmed is left, nothing more is taken until the app confirms (spec K8).
    public var storeLimit: Int
    /// Signs what the client connects with; nil, the default, is for instances whose signature switch is off.
    public var appKey: SyncAppKey?
    /// The device's clock; tests set it wrong.
    package var clock: @Sendable () -> WallTime = Self.systemClock
    static let systemClock: @Sendable () -> WallTime = {
        WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000))
    }
    /// Told of each step of a synchronisation, and decides whether it goes on; on a queue of the client's own, so it
    /// must not block. By default it always goes on.
    public var onSynchronize: (@Sendable (SyncStep) -> SyncDecision)?

    /// A configuration with the defaults of everything that is optional.
    public init(
        host: String, port: Int, instanceID: String, deviceID: String, storePath: String, trust: SyncTrust = .system,
        identity: SyncIdentity? = nil, operatingSystemName: String = "", operatingSystemVersion: String = "",
        appVersion: String = "", connectTimeout: Duration = .seconds(10), firstResend: Duration? = nil,
        backgroundTime: Duration? = nil, storeKey: [UInt8]? = nil, storeLimit: Int = 100_000_000,
        appKey: SyncAppKey? = nil,
        onSynchronize: (@Sendable (SyncStep) -> SyncDecision)? = nil
    ) {
        self.host = host
        self.port = port
        self.instanceID = instanceID
        self.deviceID = deviceID
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
}
