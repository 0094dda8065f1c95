import BusMessages
import Credentials
import Foundation
import SwiftProtobuf
package import SyncModel

extension MessageBus {
    /// How often a claim is sent at the most; a repeat is safe, because it finds its own effect.
    private static let claimAttempts = 2

    /// Uses a nonce for one signed request: good once per key, whichever process is asked (spec H9).
    ///
    /// - Parameter expiresAt: from then on the request's timestamp is refused by every process.
    /// - Returns: whether nobody has used it before.
    /// - Throws: when the store did not answer; the request must not be served then.
    package func claimNonce(
        _ nonce: [UInt8], of keyID: String, expiresAt: WallTime
    ) async throws(BusError) -> Bool {
        let claim = Data(RandomBytes.make(16))
        var attempt = 1
        while true {
            do throws(BusError) {
                let reply = try await request(.admission, as: Mss_Bus_V1_AdmissionCommands.self) { correlation in
                    .with {
                        $0.correlation = correlation
                        $0.claimNonce.keyID = keyID
                        $0.claimNonce.nonce = Data(nonce)
                        $0.claimNonce.claim = claim
                        $0.claimNonce.expiresAtMs = expiresAt.milliseconds
                    }
                }
                guard case .claim(let held)? = reply.body else {
                    throw BusError(.failed(notAttempted: false), "the reply is none to a claim")
                }
                return held.fresh
            } catch {
                guard attempt < Self.claimAttempts, error.code == .unanswered else { throw error }
                attempt += 1
            }
        }
    }
}
