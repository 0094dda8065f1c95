/// What a client needs to know to connect and to keep what it receives.
public struct SyncClientConfiguration: Sendable {
    /// The gateway's name or address; it must be in the gateway's certificate.
    public var host: String
    /// The gateway's port.
    public var port: Int
    /// The app and environment, `<workspaceId>_<appId>`.
    public var instanceID: String
    /// This device; stable across launches of the app, 1 to 100 characters.
    public var deviceID: String
    /// The SQLite file that keeps oplogs and sync points; created when it is missing, in a folder that exists.
    public var storePath: String
    /// Whose certificates are believed; the operating system's by default.
    public var trust: SyncTrust
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

    /// A configuration with the defaults of everything that is optional.
    public init(
        host: String, port: Int, instanceID: String, deviceID: String, storePath: String, trust: SyncTrust = .system,
        operatingSystemName: String = "", operatingSystemVersion: String = "", appVersion: String = "",
        connectTimeout: Duration = .seconds(10), firstResend: Duration? = nil
    ) {
        self.host = host
        self.port = port
        self.instanceID = instanceID
        self.deviceID = deviceID
        self.storePath = storePath
        self.trust = trust
        self.operatingSystemName = operatingSystemName
        self.operatingSystemVersion = operatingSystemVersion
        self.appVersion = appVersion
        self.connectTimeout = connectTimeout
        self.firstResend = firstResend
    }
}
