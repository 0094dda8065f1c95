import ServiceKit
import SyncModel

// Admission that all gateways share.
extension GatewayRuntime {
    /// Claims the nonce of a Connect, for all gateways.
    func claim(_ claim: NonceClaim, for session: SessionHandle) {
        bus.claimNonce(claim.nonce, of: claim.keyID, expiresAt: claim.expiresAt) { [self] result in
            notify([session], .claimed(try? result.get()))
        }
    }
}
