import AsyncHTTPClient
import Foundation
import NIOCore
import NIOSSL
import ServiceKit
import SyncModel

/// The push providers of every app that is woken.
struct PushProviders: Sendable {
    private struct Key: Hashable {
        let instanceID: InstanceID
        let provider: PushToken.Provider
    }

    private let providers: [Key: any PushProvider]
    private let client: HTTPClient

    /// - Throws: `FileProblem` for a missing or malformed file.
    init(_ settings: Settings) throws(FileProblem) {
        let client = try Self.client(settings)
        self.client = client
        do throws(FileProblem) {
            providers = try Self.providers(settings, over: client)
        } catch {
            try? client.syncShutdown()
            throw error
        }
    }

    private static func providers(
        _ settings: Settings, over client: HTTPClient
    ) throws(FileProblem) -> [Key: any PushProvider] {
        let name = NotifierSettings.appsFile.name
        let file = try FileProblem.json(WakeUpApps.self, of: settings[NotifierSettings.appsFile], named: name)
        var providers: [Key: any PushProvider] = [:]
        for app in file.apps {
            let instanceID = InstanceID(app.instanceId)
            if let apns = app.apns {
                providers[Key(instanceID: instanceID, provider: .apns)] = try ApplePushService(apns, over: client)
            }
            if let fcm = app.fcm {
                providers[Key(instanceID: instanceID, provider: .fcm)] = try FirebaseMessaging(fcm, over: client)
            }
        }
        return providers
    }

    /// The push provider for these devices; nil if the file names none.
    subscript(instanceID: InstanceID, provider: PushToken.Provider) -> (any PushProvider)? {
        providers[Key(instanceID: instanceID, provider: provider)]
    }

    /// Closes the connections to providers.
    func shutdown() async { try? await client.shutdown() }

    /// Closes the client after a check of the settings.
    func discard() { try? client.syncShutdown() }

    private static func client(_ settings: Settings) throws(FileProblem) -> HTTPClient {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        let authorityFile = settings[NotifierSettings.authorityFile]
        if !authorityFile.isEmpty {
            guard let found = try? NIOSSLCertificate.fromPEMFile(authorityFile), !found.isEmpty else {
                throw FileProblem(
                    description: "\(NotifierSettings.authorityFile.name): \(authorityFile) cannot be read as PEM "
                        + "certificates; check its path, its permissions and its content")
            }
            tls.trustRoots = .certificates(found)
        }
        var configuration = HTTPClient.Configuration(tlsConfiguration: tls)
        configuration.timeout.connect = .seconds(5)
        let proxy = settings[NotifierSettings.proxy]
        if !proxy.isEmpty {
            let parts = proxy.split(separator: ":")
            guard parts.count == 2, let port = Int(parts[1]), (1...65_535).contains(port) else {
                throw FileProblem(
                    description: "\(NotifierSettings.proxy.name): \"\(proxy)\" is not host:port; for example "
                        + "\(NotifierSettings.proxy.name)=\(NotifierSettings.proxy.example)")
            }
            configuration.proxy = .server(host: String(parts[0]), port: port)
        }
        return HTTPClient(eventLoopGroupProvider: .singleton, configuration: configuration)
    }
}

/// A service that delivers silent pushes to devices.
protocol PushProvider: Sendable {
    /// Sends one wake-up to the device with this token.
    func wake(_ token: String) async -> WakeUpOutcome
}

/// A push provider's response to a wake-up.
enum WakeUpOutcome: Hashable, Sendable {
    case taken
    /// The app is not on the device any more.
    case gone
    /// The provider cannot accept it now. The pause that the provider named, if any.
    case later(Duration?)
    /// The provider refuses it because of the configuration, with the reason.
    case refused(String)
}
