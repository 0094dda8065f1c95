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
        /// The key's secret cannot be read here: the key that it is sealed with is missing.
        case unreadable
    }

    let directory: any CallerLookup
    let keys: OpenedKeys

    /// Checks the signature; neither the time nor the nonce.
    func outcome(of headers: SignatureHeaders, over signature: RequestSignature) -> Outcome {
        // Whether the key is there or not: one look that finds, one that does not, and the signature compared with one
        // that some key makes.
        let some = directory.someBackendKey
        let none = "x" + some.dropFirst()
        let named = directory.instance(ofBackendKey: headers.keyID)
        let isThere = named != nil
        let other = directory.instance(ofBackendKey: isThere ? none : some)
        let keyID = isThere ? headers.keyID : some
        guard let instance = named ?? other,
            let key = instance.keys.first(where: { $0.id == keyID && $0.purpose == .backend })
        else { return .wrong }
        guard let secret = keys.secret(of: key, instance.id) else { return .unreadable }
        let isRight = signature.isValid(headers.code, with: secret)
        return isThere && isRight ? .signed(by: key, of: instance.id) : .wrong
    }
}
