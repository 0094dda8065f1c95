import Credentials
import Crypto
import DeviceProtocol
import Foundation
import NIOCore
import NIOEmbedded
import ServiceKit
import SwiftProtobuf
import SyncModel
import TestSupport

@testable import Gateway

/// A device on a channel without a network, at a gateway without a broker. The test decides whether a nonce is new.
final class PlayedDevice {
    private let channel = EmbeddedChannel()
    private let handler: DeviceHandler
    private var answers: [Mss_Device_V1_Packet] = []

    /// - Throws: an error when the gateway refuses the connection.
    init(_ runtime: GatewayRuntime) throws {
        let number = runtime.admission.number()
        guard runtime.admission.admit(number, channel, from: SourceAddress(channel.remoteAddress)) else {
            throw Failure("the connection was not taken")
        }
        let handler = DeviceHandler(gateway: runtime, number: number, acceptedAt: .now)
        self.handler = handler
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        try channel.pipeline.syncOperations.addHandlers(
            ReadPace(admission: runtime.admission, app: { handler.instanceID }), handler)
    }

    /// Sends a frame.
    func send(_ fill: (inout Mss_Device_V1_Packet) -> Void) throws {
        try channel.writeInbound(Mss_Device_V1_Packet.with(fill))
    }

    /// Sends a Connect: to `w_signed`, signed with the secret, or to `w_app` without a secret.
    func connect(user: String = "", secret: [UInt8]? = nil) throws {
        var connect = Mss_Device_V1_Connect.with {
            $0.protocolVersion = 1
            $0.instanceID = secret == nil ? "w_app" : "w_signed"
            $0.deviceID = "d"
            $0.storeID = "s"
            if !user.isEmpty {
                $0.bind.bindNumber = 1
                $0.bind.userID = user
            }
        }
        if let secret {
            connect.signature.keyID = GatewaySocketFixture.key.id
            connect.signature.timestampMs = WallTime.now.milliseconds
            connect.signature.nonce = Data(RandomBytes.make(16))
            connect.signature.mac = Data(ConnectSignature.mac(of: connect.signedParts, by: SymmetricKey(data: secret)))
        }
        try send { $0.connect = connect }
    }

    /// Reports to the gateway that the nonce is new.
    func isProven() { handler.handle(.claimed(true)) }

    /// Whether the connection is open.
    var isConnected: Bool { channel.isActive }

    /// The instance of the accepted Connect, otherwise nil.
    var instanceID: InstanceID? { handler.instanceID }

    /// Whether its Connect was accepted and the connection was not closed since.
    var isTaken: Bool { instanceID != nil && closeCode == nil }

    /// The code of the Close frame.
    var closeCode: UInt32? {
        var decoder = PacketDecoder(maxBytes: DeviceProtocolLimits.toDeviceBytes)
        while var frames = try? channel.readOutbound(as: ByteBuffer.self) {
            while let packet = try? decoder.decode(buffer: &frames) { answers.append(packet) }
        }
        guard case .close(let close)? = answers.last?.body else { return nil }
        return close.code
    }

    /// Closes the connection.
    func disconnect() throws {
        try channel.close().wait()
        channel.embeddedEventLoop.run()
    }
}
