import AsyncHTTPClient
import Foundation
import NIOCore
import NIOSSL
import ServiceKit
import SyncModel

/// The providers of every app that is woken.
struct PushProviders: Sendable {
    private struct Key: Hashable {
        let instanceID: InstanceID
        let provider: PushToken.Provider
    }

    private let providers: [Key: any PushProvider]
    private let client: HTTPClient

    /// - Throws: `FileProblem` for a file that is not there, or not what it should be.
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

    /// Who wakes devices of this kind; nil: nobody was named.
    subscript(instanceID: InstanceID, provider: PushToken.Provider) -> (any PushProvider)? {
        providers[Key(instanceID: instanceID, provider: provider)]
    }

    /// Closes the connections to providers.
    func shutdown() async { try? await client.shutdown() }

    /// They were made only to see whether they can be.
    func discard() { try? client.syncShutdown() }

    private static func client(_ settings: Settings) throws(FileProblem) -> HTTPClient {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        let authorityFile = settings[NotifierSettings.authorityFile]
        if !authorityFile.isEmpty {
            guard let found = try? NIOSSLCertificate.fromPEMFile(authorityFile), !found.isEmpty else {
                throw FileProblem(
                    description: "\(NotifierSettings.authorityFile.name): \(authorityFile) cannot be read as PEM "
                        + "certificates; check its path, its rights and what is in it")
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
