import BusMessages
import Credentials
import Crypto
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

/// A gateway on a socket without a broker: what devices meet up to their registration.
struct GatewaySocketFixture: Sendable {
    let port: Int
    /// The file of the certificate authority.
    let authority: String
    let core: GatewayCore

    /// Serves on a free port while the body runs; there are the apps `w_app` and `w_signed`.
    static func serve(
        _ change: (inout AdmissionLimits) -> Void = { _ in }, connectDeadline: Duration = .seconds(60),
        _ body: (Self) async throws -> Void
    ) async throws {
        let folder = URL(fileURLWithPath: NSTemporaryDirectory()).appending(path: "gateway-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let tls = try await serverContext(in: folder)
        var limits = AdmissionLimits()
        change(&limits)
        let core = try core(limits, connectDeadline)
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try Arrival.accept(channel, core: core, servesFiles: false, tls: tls)
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        try await body(
            Self(
                port: channel.localAddress?.port ?? 0, authority: folder.appending(path: "ca.pem").path, core: core))
        try await channel.close()
    }

    private static let masterKeys = "k AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    private static let secret = [UInt8](repeating: 7, count: 32)

    private static func signedKey() throws -> AppKey {
        let address = KeyAddress(instanceID: InstanceID("w_signed"), keyID: "k1", purpose: .device)
        let sealed = try requireValue(try KeyRing(text: masterKeys).seal(secret, of: address), "not sealed")
        return AppKey(
            id: address.keyID, purpose: address.purpose, sealedSecret: sealed, limits: KeyLimits(),
            createdAt: WallTime(milliseconds: 0))
    }

    /// The first frame of a device of `w_signed`.
    static func signedConnect() -> Mss_Device_V1_Packet {
        .with {
            $0.connect.protocolVersion = 1
            $0.connect.instanceID = "w_signed"
            $0.connect.deviceID = "d"
            $0.connect.storeID = "s"
            $0.connect.signature.keyID = "k1"
            $0.connect.signature.timestampMs = WallTime.now.milliseconds
            $0.connect.signature.nonce = Data(RandomBytes.make(16))
            let key = SymmetricKey(data: secret)
            $0.connect.signature.mac = Data(ConnectSignature.mac(of: $0.connect.signedParts, by: key))
        }
    }

    private static func serverContext(in folder: URL) async throws -> NIOSSLContext {
        let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
            .appending(path: "../../deploy/scripts/certificates.sh").standardizedFileURL
        let made = try await Command.run(script, [folder.path], environment: ProcessInfo.processInfo.environment)
        guard made.status == 0 else { throw Failure(made.output) }
        func file(_ name: String) -> String { folder.appending(path: name).path }
        var configuration = TLSConfiguration.makeServerConfiguration(
            certificateChain: try NIOSSLCertificate.fromPEMFile(file("server.pem")).map { .certificate($0) },
            privateKey: .privateKey(try NIOSSLPrivateKey(file: file("server.key"), format: .pem)))
        configuration.applicationProtocols = [DeviceProtocolLimits.applicationProtocol, TransportChoice.httpName]
        return try NIOSSLContext(configuration: configuration)
    }

    private static func core(_ admission: AdmissionLimits, _ connectDeadline: Duration) throws -> GatewayCore {
        let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        let context = ServiceContext(
            name: "test",
            settings: try Settings(
                ProcessSettings.keys + GatewaySettings.keys,
                environment: [
                    "MSS_HEALTH_PORT": "1", "MSS_AMQP_USER": "gateway", "MSS_GATEWAY_ID": "test",
                    "MSS_GATEWAY_CERTIFICATE_FILE": "none",
                    "MSS_GATEWAY_PRIVATE_KEY_FILE": "none",
                    "MSS_MASTER_KEYS": masterKeys,
                ]), logger: logger, health: HealthState())
        let control = ControlConnection(context)
        let sealed = try signedKey()
        control.directory.take(
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
                        $0.keys = [sealed.bus]
                    },
                ]
            })
        var limits = SessionLimits()
        limits.connectDeadline = connectDeadline
        return GatewayCore(context, limits: limits, admission: admission, control: control)
    }
}
