import ServiceKit
import SyncModel

// What gateways must count together.
extension GatewayCore {
    /// Claims the nonce of a Connect over all gateways.
    func claim(_ claim: NonceClaim, for session: SessionHandle) {
        bus.claimNonce(claim.nonce, of: claim.keyID, expiresAt: claim.expiresAt) { [self] result in
            tell([session], .claimed(try? result.get()))
        }
    }
}
