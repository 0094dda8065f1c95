import BusMessages
import Credentials
import Foundation
import SwiftProtobuf
package import SyncModel

extension MessageBus {
    /// Attempts of a claim: the second one covers a killed writer, and one that stopped waiting for the database. A repeat
    /// is safe, because it finds its own effect.
    private static let claimAttempts = 2

    /// Claims a nonce for one signed request. A nonce is accepted once per key, across all processes (H9).
    ///
    /// - Parameters:
    ///   - expiresAt: from this time on, every process refuses the request by its timestamp.
    ///   - completion: called exactly once, on the bus thread or at once; must not block. True: the nonce was unused.
    ///     After an error the caller must not serve the request.
    package func claimNonce(
        _ nonce: [UInt8], of keyID: String, expiresAt: WallTime,
        completion: @escaping @Sendable (Result<Bool, BusError>) -> Void
    ) {
        let claim = Mss_Bus_V1_ClaimNonce.with {
            $0.keyID = keyID
            $0.nonce = Data(nonce)
            // The broker can redeliver the command, and `send` can repeat it: both find their own claim.
            $0.claim = Data(RandomBytes.make(16))
            $0.expiresAtMs = expiresAt.milliseconds
        }
        send(claim, attempt: 1, completion)
    }

    /// Claims a nonce and waits for the result.
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
            case .failure(let error) where error.code != .unavailable && attempt < Self.claimAttempts:
                send(claim, attempt: attempt + 1, completion)
            case .failure(let error):
                completion(.failure(error))
            case .success(let reply):
                guard case .claim(let held)? = reply.body else {
                    return completion(
                        .failure(BusError(.failed(notAttempted: false), "unexpected reply type for a nonce claim")))
                }
                completion(.success(held.fresh))
            }
        }
    }
}
