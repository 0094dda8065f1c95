import Credentials
import Crypto
package import DeviceProtocol
import Foundation
import SwiftProtobuf
package import SyncModel

/// Signs the first frame of a connection (`DeviceProtocol.md`, Signed connects).
package struct ConnectSigner: Sendable {
    private static let nonceBytes = 16

    private let keyID: String
    private let secret: SymmetricKey

    package init(_ key: SyncAppKey) {
        keyID = key.id
        secret = SymmetricKey(data: key.secret)
    }

    /// Returns the packet, signed when it is a Connect.
    ///
    /// - Parameter now: the best known time of the service.
    package func signed(_ packet: Mss_Device_V1_Packet, now: WallTime) -> Mss_Device_V1_Packet {
        guard case .connect(var connect)? = packet.body else { return packet }
        connect.signature = .with {
            $0.keyID = keyID
            $0.timestampMs = now.milliseconds
            $0.nonce = Data(RandomBytes.make(Self.nonceBytes))
        }
        connect.signature.mac = Data(ConnectSignature.mac(of: connect.signedParts, by: secret))
        return .with { $0.connect = connect }
    }
}
