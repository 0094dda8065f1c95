import Credentials
import Crypto
import DeviceProtocol
import SyncModel

/// What the signature of a Connect is worth (DeviceProtocol.md, Signed connects; spec H9, reliability SEC9).
enum ConnectProof: Hashable {
    /// The instance asks for none.
    case notNeeded
    /// By a live key and of now: good if its nonce has not been used.
    case signed(NonceClaim)
    /// By a live key, but the device's clock is off.
    case clockOff
    /// Missing, wrong, or by no live key; which of them is not told.
    case refused
    /// This gateway's sealing keys do not open the key.
    case unavailable

    /// Stands in for a key that is not known, so that guessing key ids takes as long as guessing signatures.
    private static let nobody = SymmetricKey(size: .bits256)

    /// Checks a Connect to an instance.
    static func check(
        _ connect: Mss_Device_V1_Connect, to instance: Instance, in world: SessionSurroundings
    ) -> ConnectProof {
        guard instance.requiresSignature else { return .notNeeded }
        let (signature, parts) = (connect.signature, connect.signedParts)
        let mac = [UInt8](signature.mac)
        guard let key = instance.keys(for: .device).first(where: { $0.id.isSame(as: signature.keyID) }) else {
            _ = ConnectSignature.isValid(mac, of: parts, by: nobody)
            return .refused
        }
        guard let secret = world.openKey(key, instance.id) else { return .unavailable }
        guard ConnectSignature.isValid(mac, of: parts, by: secret),
            ConnectSignature.nonceBytes.contains(signature.nonce.count)
        else { return .refused }
        let tolerance = ConnectSignature.tolerance.wholeMilliseconds
        let now = world.machineTime.milliseconds
        guard (now - tolerance...now + tolerance).contains(signature.timestampMs) else { return .clockOff }
        return .signed(
            NonceClaim(
                keyID: key.id, nonce: [UInt8](signature.nonce),
                expiresAt: WallTime(milliseconds: signature.timestampMs + 2 * tolerance)))
    }
}

/// A nonce that one signed request uses up.
struct NonceClaim: Hashable, Sendable {
    var keyID: String
    var nonce: [UInt8]
    /// The tolerance twice over: no gateway takes the timestamp then, be its clock as far off as a device's may be.
    var expiresAt: WallTime
}
