public import Foundation
import MobileSync
import Synchronization

/// The stores of the app and of its users, and who the user is.
///
/// After a sign-out, and after a restart, the user's store is the last one's until another user signs in.
public final class UserStores: Sendable {
    private static let key = "last"

    private let store: ServiceStore
    private let onEvent: @Sendable (UserStoreEvent) -> Void
    private let now: @Sendable () -> Date
    /// Held from the beginning of a sign-in to its end, so that events come in order.
    private let turn = Mutex(())
    private let state: Mutex<(lastUserID: String?, isSignedIn: Bool)>

    /// - Parameter onEvent: called by `signIn`, before it returns; it may read and write the stores, and must not sign
    ///   anybody in or out.
    /// - Throws: `ClientServiceError.store`.
    public init(
        store: ServiceStore, now: @escaping @Sendable () -> Date = { Date() },
        onEvent: @escaping @Sendable (UserStoreEvent) -> Void = { _ in }
    ) throws(ClientServiceError) {
        self.store = store
        self.onEvent = onEvent
        self.now = now
        let body = try store.read("reading who signed in last") { items in try items.body(.users, key: Self.key) }
        state = Mutex((body.map { String(decoding: $0, as: UTF8.self) }, false))
    }

    /// Values that are nobody's in particular.
    public var common: KeyValueStore { KeyValueStore(store: store, owner: ServiceItems.common) }

    /// Values of the user who is signed in, or was last; nil: nobody has ever signed in.
    public var user: KeyValueStore? { lastUserID.map { KeyValueStore(store: store, owner: $0) } }

    /// Who is signed in, or was last.
    public var lastUserID: String? { state.withLock { $0.lastUserID } }

    /// Whether that user is signed in now; false after a restart, until somebody signs in.
    public var isSignedIn: Bool { state.withLock { $0.isSignedIn } }

    /// A user signs in: the user's store is that one's from now on.
    ///
    /// - Throws: `ClientServiceError`: `invalidArgument` for a user id that is empty, has a NUL or over 100 characters;
    ///   `store`. The store stays the last one's then, although `willResign` may have been told.
    public func signIn(userID: String) throws(ClientServiceError) {
        try ServiceLimits.check(userID: userID)
        try turn.withLock { _ throws(ClientServiceError) in
            let last = lastUserID
            if let last, last.utf8.elementsEqual(userID.utf8) {
                state.withLock { $0.isSignedIn = true }
                onEvent(.renewed(userID: userID))
                return
            }
            if let last { onEvent(.willResign(userID: last)) }
            try store.write("noting who signed in") { items in
                try items.put(Data(userID.utf8), .users, key: Self.key)
            }
            state.withLock { $0 = (userID, true) }
            onEvent(.updated(userID: userID))
        }
    }

    /// The user signs out; the store stays open until another user signs in.
    public func signOut() { turn.withLock { _ in state.withLock { $0.isSignedIn = false } } }

    /// Opens or creates a cache on the disk. A damaged one begins anew, empty. An app opens a name once.
    ///
    /// - Parameters:
    ///   - name: 1 to 64 letters, digits, `-` or `_`; the name of its file.
    ///   - capacity: bytes, of all users together.
    ///   - isPerUser: each user has entries of one's own, and it changes with the user.
    ///   - isEncrypted: sealed with the key that the `ServiceStore` has now; with another key, later, all is missing.
    /// - Throws: `ClientServiceError`: `store`; `invalidArgument` for another name, a capacity under 1,000 bytes, or to
    ///   encrypt without a key.
    public func diskCache(
        name: String, capacity: Int, isPerUser: Bool = false, isEncrypted: Bool = false
    ) throws(ClientServiceError) -> DiskCache {
        guard name.wholeMatch(of: /[A-Za-z0-9_-]{1,64}/) != nil else {
            throw ClientServiceError(.invalidArgument, "a cache's name has 1 to 64 letters, digits, - or _")
        }
        guard capacity >= 1_000 else {
            throw ClientServiceError(.invalidArgument, "a cache takes a capacity of at least 1,000 bytes")
        }
        let cipher = isEncrypted ? store.cipher : nil
        guard !isEncrypted || cipher != nil else {
            throw ClientServiceError(.invalidArgument, "there is no key to encrypt with: give one to the ServiceStore")
        }
        return try DiskCache(
            file: store.folder.appendingPathComponent("cache-\(name).sqlite"), capacity: capacity, cipher: cipher,
            owner: { isPerUser ? self.lastUserID : ServiceItems.common }, now: now)
    }
}
