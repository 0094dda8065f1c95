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
    /// - Parameters:
    ///   - expiresAt: from then on the request's timestamp is refused by every process.
    ///   - completion: called exactly once, on the bus thread or at once, and must not block; it hears whether nobody
    ///     has used the nonce before, or that the store did not answer: the request must not be served then.
    package func claimNonce(
        _ nonce: [UInt8], of keyID: String, expiresAt: WallTime,
        completion: @escaping @Sendable (Result<Bool, BusError>) -> Void
    ) {
        let claim = Mss_Bus_V1_ClaimNonce.with {
            $0.keyID = keyID
            $0.nonce = Data(nonce)
            // The broker may give a writer the command twice, and it is repeated here: both find their own claim.
            $0.claim = Data(RandomBytes.make(16))
            $0.expiresAtMs = expiresAt.milliseconds
        }
        send(claim, attempt: 1, completion)
    }

    /// The same for who can wait.
    package func claimNonce(
        _ nonce: [UInt8], of keyID: String, expiresAt: WallTime
    ) async throws(BusError) -> Bool {
        let result = await withCheckedContinuation { continuation in
            claimNonce(nonce, of: keyID, expiresAt: expiresAt) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    private func send(
        _ claim: Mss_Bus_V1_ClaimNonce, attempt: Int,
        _ completion: @escaping @Sendable (Result<Bool, BusError>) -> Void
    ) {
        request(.admission, as: Mss_Bus_V1_AdmissionCommands.self) { correlation in
            .with {
                $0.correlation = correlation
                $0.claimNonce = claim
            }
        } completion: { [self] result in
            switch result {
            case .failure(let error) where error.code == .unanswered && attempt < Self.claimAttempts:
                send(claim, attempt: attempt + 1, completion)
            case .failure(let error):
                completion(.failure(error))
            case .success(let reply):
                guard case .claim(let held)? = reply.body else {
                    return completion(
                        .failure(BusError(.failed(notAttempted: false), "the reply is none to a claim")))
                }
                completion(.success(held.fresh))
            }
        }
    }
}
