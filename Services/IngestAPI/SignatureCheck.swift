import Credentials
import SyncModel

/// Finds out whether a request was signed by a key that backends hold (reliability SEC6).
///
/// It does the same work for a key that is not there as for one that is, so that its time says nothing about keys.
struct SignatureCheck: Sendable {
    /// What it found.
    enum Outcome: Hashable, Sendable {
        case signed(by: AppKey, of: InstanceID)
        /// No such key, or not its signature; callers must not be told which.
        case wrong
        /// The key's secret cannot be read here: a master key is missing.
        case unreadable
    }

    private let directory: any ConfigurationLookup
    private let ring: KeyRing
    /// Stands in for keys that are not there.
    private let stranger: (address: KeyAddress, sealedSecret: [UInt8])

    init(directory: any ConfigurationLookup, ring: KeyRing) {
        self.directory = directory
        self.ring = ring
        let address = KeyAddress(instanceID: InstanceID(""), keyID: "", purpose: .backend)
        stranger = (address, ring.seal(RandomBytes.make(RequestSignature.bytes), of: address) ?? [])
    }

    /// Checks the signature; neither the time nor the nonce.
    func outcome(of headers: SignatureHeaders, over signature: RequestSignature) -> Outcome {
        let instance = directory.instance(ofKey: headers.keyID)
        let key = instance?.keys.first { $0.id == headers.keyID && $0.purpose == .backend }
        var address = stranger.address
        if let instance, let key {
            address = KeyAddress(instanceID: instance.id, keyID: key.id, purpose: key.purpose)
        }
        guard let secret = ring.open(key?.sealedSecret ?? stranger.sealedSecret, of: address) else {
            return .unreadable
        }
        let isRight = signature.isValid(headers.code, with: secret)
        guard isRight, let instance, let key else { return .wrong }
        return .signed(by: key, of: instance.id)
    }
}
