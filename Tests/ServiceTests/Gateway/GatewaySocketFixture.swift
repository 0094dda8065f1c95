import BusMessages
import Credentials
import DeviceProtocol
import Foundation
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import SwiftProtobuf
import SyncModel
import TestSupport

@testable import Gateway
@testable import ServiceKit

/// A gateway on a socket without a broker, for tests of connections up to the registration.
struct GatewaySocketFixture: Sendable {
    let port: Int
    /// The path of the certificate authority's file.
    let authority: String
    let runtime: GatewayRuntime

    /// A key of the app `w_signed`.
    static let key = (id: "k1", secret: (0..<32).map { UInt8($0) })
    private static let masterKey = "test-1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

    /// Serves on a free port while the body runs. The apps are `w_app`, and `w_signed` with signed connects.
    static func serve(
        _ change: (inout AdmissionLimits) -> Void = { _ in }, connectDeadline: Duration = .seconds(60),
        _ body: (Self) async throws -> Void
    ) async throws {
        let folder = URL(fileURLWithPath: NSTemporaryDirectory()).appending(path: "gateway-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let tls = try await serverContext(in: folder)
        var limits = AdmissionLimits()
        // Other tests take the processor, and a late event loop is no part of these tests.
        limits.lateness = .seconds(60)
        change(&limits)
        let runtime = try runtime(limits, connectDeadline)
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try AcceptedConnection.accept(
                        channel, runtime: runtime, servesFiles: false, acceptsMQTT: true, tls: tls)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        try await body(
            Self(
                port: channel.localAddress?.port ?? 0, authority: folder.appending(path: "ca.pem").path,
                runtime: runtime))
        try await channel.close()
    }

    private static func serverContext(in folder: URL) async throws -> NIOSSLContext {
        let script = ProjectFolder.url.appending(path: "deploy/scripts/certificates.sh")
        let made = try await Command.run(script, [folder.path], environment: ProcessInfo.processInfo.environment)
        guard made.status == 0 else { throw Failure(made.output) }
        func file(_ name: String) -> String { folder.appending(path: name).path }
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(file("server.pem")).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: file("server.key"), format: .pem)))
        configuration.applicationProtocols = [
            DeviceProtocolLimits.applicationProtocol, TransportChoice.httpName, MQTTBridge.applicationProtocol,
        ]
        return try NIOSSLContext(configuration: configuration)
    }

    /// The service context that a gateway creates from its settings.
    static func context() throws -> ServiceContext {
        ServiceContext(
            name: "test",
            settings: try Settings(
                ProcessSettings.keys + GatewaySettings.keys,
                environment: [
                    "MSS_HEALTH_PORT": "1", "MSS_AMQP_USER": "gateway", "MSS_GATEWAY_ID": "test",
                    "MSS_GATEWAY_CERTIFICATE_FILE": "none",
                    "MSS_GATEWAY_PRIVATE_KEY_FILE": "none",
                    "MSS_SEALING_KEYS": try KeyRing(text: masterKey).sealing(for: .device).text,
                ]), logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, health: HealthState())
    }

    /// The gateway's runtime without a socket.
    static func runtime(
        _ admission: AdmissionLimits, _ connectDeadline: Duration = .seconds(60)
    ) throws -> GatewayRuntime {
        let context = try context()
        let control = ControlConnection(context, keysFor: .device)
        let address = KeyAddress(instanceID: InstanceID("w_signed"), keyID: key.id, purpose: .device)
        let sealed = try requireValue(try KeyRing(text: masterKey).seal(key.secret, of: address), "nothing was sealed")
        control.directory.apply(
            .with {
                $0.version = 1
                $0.instances = [
                    .with {
                        $0.instanceID = "w_app"
                        $0.enabled = true
                    },
                    .with {
                        $0.instanceID = "w_signed"
                        $0.enabled = true
                        $0.requiresSignature = true
                        $0.keys = [
                            .with {
                                $0.keyID = key.id
                                $0.purpose = .device
                                $0.sealedSecret = Data(sealed)
                            }
                        ]
                    },
                ]
            })
        var limits = SessionLimits()
        limits.connectDeadline = connectDeadline
        return GatewayRuntime(context, limits: limits, admission: admission, control: control)
    }
}
