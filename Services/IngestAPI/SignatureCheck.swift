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
    /// Stands in for instances that have no such key; nobody knows its key's secret.
    private let stranger: Instance
    private let strangersKey: AppKey

    init(directory: any ConfigurationLookup, ring: KeyRing) {
        self.directory = directory
        self.ring = ring
        // With NUL, which no instance has.
        let address = KeyAddress(instanceID: InstanceID("no\0_app"), keyID: "k0000000000000000", purpose: .backend)
        let sealed = ring.seal(RandomBytes.make(RequestSignature.bytes), of: address) ?? []
        strangersKey = AppKey(
            id: address.keyID, purpose: .backend, sealedSecret: sealed, limits: KeyLimits(),
            createdAt: WallTime(milliseconds: 0))
        stranger = Instance(
            id: address.instanceID, name: "", isEnabled: false, validatorURL: "", verdictLifetime: .zero,
            keys: [strangersKey])
    }

    /// Checks the signature; neither the time nor the nonce.
    func outcome(of headers: SignatureHeaders, over signature: RequestSignature) -> Outcome {
        var instance = stranger
        var wanted = strangersKey.id
        if let holder = directory.instance(ofKey: headers.keyID) {
            (instance, wanted) = (holder, headers.keyID)
        }
        var key = strangersKey
        for one in instance.keys where one.id == wanted && one.purpose == .backend { key = one }
        let owner = key.id == headers.keyID ? instance.id : stranger.id
        let address = KeyAddress(instanceID: owner, keyID: key.id, purpose: .backend)
        guard let secret = ring.open(key.sealedSecret, of: address) else { return .unreadable }
        let isRight = signature.isValid(headers.code, with: secret)
        return isRight && owner != stranger.id ? .signed(by: key, of: owner) : .wrong
    }
}
