public import Foundation
public import Logging

/// The connection settings that an app is built with: the content of a `meta.config` file, or the same values set in
/// code (K7).
///
/// The file is a JSON object, as `mssctl instance meta-config` prints it. Unknown members are ignored. For a private
/// installation, its certificate authority is the file `mss-ca.pem` beside `meta.config`.
public struct MetaConfig: Sendable, Hashable {
    /// The gateway's host name or address; `syncserver` in the file.
    public var host: String
    /// The gateway's port; `syncport` in the file.
    public var port: Int
    /// The environment; `workspaceId` in the file. Empty when the file contains only `instanceId`.
    public var workspaceID: String
    /// The app; `appId` in the file.
    public var appID: String
    /// The id of the app's key; `appKey` in the file. The value is nil when the file has none.
    public var appKey: String?
    /// The app's key with its secret; `appSecret` in the file. When nil, the client does not sign its connects.
    public var signingKey: SyncAppKey?
    /// The PEM file of the private certificate authority that signs the gateway's certificate; nil for an authority of
    /// the operating system.
    public var authorityFile: String?
    /// `instanceId` in the file, for instance ids that do not have the form `<workspaceId>_<appId>`.
    private var wholeInstanceID: String?

    /// The instance of the app: `instanceId` of the file, or else `<workspaceId>_<appId>`.
    public var instanceID: String { wholeInstanceID ?? "\(workspaceID)_\(appID)" }

    /// Creates the settings in code, for an app that does not use a file.
    public init(
        host: String, port: Int, workspaceID: String, appID: String, appKey: String? = nil,
        signingKey: SyncAppKey? = nil
    ) {
        self.host = host
        self.port = port
        self.workspaceID = workspaceID
        self.appID = appID
        self.appKey = appKey ?? signingKey?.id
        self.signingKey = signingKey
    }

    /// Reads a `meta.config` file. A file `mss-ca.pem` in the same folder becomes `authorityFile`.
    ///
    /// - Throws: `SyncError.invalidArgument`. The message names the file, the member and its expected form.
    public init(contentsOf file: URL) throws(SyncError) {
        let data: Data
        do {
            data = try Data(contentsOf: file)
        } catch {
            throw SyncError(.invalidArgument, "\(file.path) cannot be read (\(error.localizedDescription))")
        }
        try self.init(json: data, source: file.path)
        let authority = file.deletingLastPathComponent().appending(path: "mss-ca.pem").path
        if FileManager.default.fileExists(atPath: authority) { authorityFile = authority }
    }

    /// Reads the content of a `meta.config` file.
    ///
    /// - Parameter source: the name of the content in error messages.
    /// - Throws: `SyncError.invalidArgument`. The message names the source, the member and its expected form.
    public init(json: Data, source: String = "meta.config") throws(SyncError) {
        let members: [String: Member]
        do {
            members = try JSONDecoder().decode([String: Member].self, from: json)
        } catch {
            throw SyncError(.invalidArgument, "\(source) is not a JSON object in UTF-8")
        }
        let reader = Reader(members: members, source: source)
        host = try reader.host("syncserver")
        port = try reader.port("syncport")
        appKey = try reader.text("appKey")
        if let secret = try reader.text("appSecret") {
            guard let key = try? SyncAppKey(id: appKey ?? "", secret: secret) else {
                throw reader.error("appSecret", "Base64 of at least 16 bytes, together with appKey")
            }
            signingKey = key
        }
        let whole = try reader.text("instanceId")
        let (workspaceID, appID) = (try reader.text("workspaceId"), try reader.text("appId"))
        if let whole {
            // An instance id without `_` has no parts to compare.
            if let workspaceID, let appID, whole != "\(workspaceID)_\(appID)" {
                throw reader.error("instanceId", "<workspaceId>_<appId>, here \(workspaceID)_\(appID), or leave it out")
            }
            (self.workspaceID, self.appID, wholeInstanceID) = (workspaceID ?? "", appID ?? whole, whole)
        } else {
            guard let workspaceID else { throw reader.error("workspaceId", "a text that is not empty") }
            guard let appID else { throw reader.error("appId", "a text that is not empty") }
            (self.workspaceID, self.appID) = (workspaceID, appID)
        }
    }

    /// Returns a client configuration for this gateway and instance. Set the optional properties on the result.
    ///
    /// - Parameters:
    ///   - deviceID: see `SyncClientConfiguration.deviceID`; `DeviceIdentifier` can create one.
    ///   - storePath: see `SyncClientConfiguration.storePath`.
    ///   - trust: the certificate authorities that the client trusts; nil for those of `authorityFile`, or else of the
    ///     operating system.
    public func clientConfiguration(
        deviceID: String, storePath: String, trust: SyncTrust? = nil
    ) -> SyncClientConfiguration {
        let ownTrust = authorityFile.map { SyncTrust.certificateAuthority(file: $0) } ?? .system
        return SyncClientConfiguration(
            host: host, port: port, instanceID: instanceID, deviceID: deviceID, storePath: storePath,
            trust: trust ?? ownTrust, appKey: signingKey)
    }

    /// Makes the client of an app that keeps its data in one folder: the device id (`DeviceIdentifier`) and
    /// `sync.sqlite`. The other settings have their defaults.
    ///
    /// - Parameter folder: a folder that exists and is writable.
    /// - Throws: as `DeviceIdentifier.load`, `DeviceIdentifier.loadSecret` and `SyncClient.init`.
    public func makeClient(in folder: URL, logger: Logger) throws(SyncError) -> SyncClient {
        var configuration = clientConfiguration(
            deviceID: try DeviceIdentifier.load(from: folder),
            storePath: folder.appendingPathComponent("sync.sqlite").path)
        configuration.deviceSecret = try DeviceIdentifier.loadSecret()
        return try SyncClient(configuration: configuration, logger: logger)
    }
}

extension MetaConfig {
    /// A value in the file. No setting accepts `other`.
    private enum Member: Decodable {
        case text(String)
        case number(Int)
        case other

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let text = try? container.decode(String.self) {
                self = .text(text)
            } else if let number = try? container.decode(Int.self) {
                self = .number(number)
            } else {
                self = .other
            }
        }
    }

    /// Reads the members of a file and creates the errors for invalid members.
    private struct Reader {
        let members: [String: Member]
        let source: String

        /// Returns nil when the member is missing or empty.
        func text(_ key: String) throws(SyncError) -> String? {
            switch members[key] {
            case nil: return nil
            case .text(let text): return text.isEmpty ? nil : text
            case .number, .other: throw error(key, "a text")
            }
        }

        func host(_ key: String) throws(SyncError) -> String {
            guard let host = try text(key), !host.contains("/"), !host.contains(where: \.isWhitespace) else {
                throw error(key, "the gateway's name or address, without https:// and port")
            }
            return host
        }

        func port(_ key: String) throws(SyncError) -> Int {
            let number: Int? =
                switch members[key] {
                case .number(let number): number
                case .text(let text): Int(text)
                case nil, .other: nil
                }
            guard let number, (1...65_535).contains(number) else {
                throw error(key, "a number from 1 to 65535, as a number or as a text")
            }
            return number
        }

        func error(_ key: String, _ expected: String) -> SyncError {
            let state = members[key] == nil ? "is missing" : "is not usable"
            return SyncError(.invalidArgument, "\(source): \(key) \(state); expected \(expected)")
        }
    }
}
