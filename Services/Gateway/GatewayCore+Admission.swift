import BusMessages
import Credentials
import Foundation
import ServiceKit
import SwiftProtobuf
import SyncModel

// What gateways must count together.
extension GatewayCore {
    /// Claims the nonce of a Connect over all gateways.
    func claim(_ claim: NonceClaim, for session: SessionHandle) {
        // The broker may give a writer the command twice: the second finds its own claim.
        let mark = Data(RandomBytes.make(16))
        bus.request(.admission, as: Mss_Bus_V1_AdmissionCommands.self) { number in
            .with {
                $0.correlation = number
                $0.claimNonce.keyID = claim.keyID
                $0.claimNonce.nonce = Data(claim.nonce)
                $0.claimNonce.claim = mark
                $0.claimNonce.expiresAtMs = claim.expiresAt.milliseconds
            }
        } completion: { [self] result in
            var isFresh: Bool?
            if case .success(let reply) = result, case .claim(let claim)? = reply.body { isFresh = claim.fresh }
            tell([session]) { [isFresh] machine, world in machine.claimed(isFresh, in: world) }
        }
    }
}
