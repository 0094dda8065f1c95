import Concurrency
public import Foundation
import MobileSync

/// The stores of the app and of its users, and the current user.
///
/// After a sign-out or a restart, the user's store is that of the last user until another user signs in.
public final class UserStores: Sendable {
    private static let key = "last"

    private let store: ServiceStore
    private let onEvent: @Sendable (UserStoreEvent) -> Void
    private let now: @Sendable () -> Date
    /// Locked during a whole sign-in, so that events keep their order.
    private let turn = LockedValue(())
    private let state: LockedValue<(lastUserID: String?, isSignedIn: Bool)>

    /// Opens the stores and reads the user who signed in last.
    ///
    /// - Parameter onEvent: called by `signIn` before it returns. It can read and write the stores; it must not call
    ///   `signIn` or `signOut`.
    /// - Throws: `ClientServiceError.store`.
    public init(
        store: ServiceStore, now: @escaping @Sendable () -> Date = { Date() },
        onEvent: @escaping @Sendable (UserStoreEvent) -> Void = { _ in }
    ) throws(ClientServiceError) {
        self.store = store
        self.onEvent = onEvent
        self.now = now
        let body = try store.read("reading the last user") { items in try items.body(.users, key: Self.key) }
        state = LockedValue((body.map { String(decoding: $0, as: UTF8.self) }, false))
    }

    /// The common values, which belong to no user.
    public var common: KeyValueStore { KeyValueStore(store: store, owner: ServiceItems.common) }

    /// The values of the user who is signed in or was signed in last; nil when no user has ever signed in.
    public var user: KeyValueStore? { lastUserID.map { KeyValueStore(store: store, owner: $0) } }

    /// The user who is signed in or was signed in last; nil when no user has ever signed in.
    public var lastUserID: String? { state.withLock { $0.lastUserID } }

    /// Whether that user is signed in now; false after a restart until a user signs in.
    public var isSignedIn: Bool { state.withLock { $0.isSignedIn } }

    /// Signs a user in: from now on `user` is the store of this user.
    ///
    /// - Throws: `ClientServiceError`: `store`; `invalidArgument` for a user id that is empty, contains NUL or has more
    ///   than 100 characters (UTF-16 units). The store then stays that of the last user, although `willResign` may have
    ///   been sent.
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
            try store.write("storing the last user") { items in
                try items.put(Data(userID.utf8), .users, key: Self.key)
            }
            state.withLock { $0 = (userID, true) }
            onEvent(.updated(userID: userID))
        }
    }

    /// Signs the user out. The store stays open until another user signs in.
    public func signOut() { turn.withLock { _ in state.withLock { $0.isSignedIn = false } } }

    /// Opens or creates a cache on disk. A damaged cache is replaced by an empty one. The app must open a name only
    /// once.
    ///
    /// - Parameters:
    ///   - name: 1 to 64 letters, digits, `-` or `_`. It is part of the file name.
    ///   - capacity: the largest size for all users together, in bytes; at least 1,000.
    ///   - isPerUser: each user has separate entries, and the cache changes with the user.
    ///   - isEncrypted: encrypts values with the current key of the `ServiceStore`. After a change of the key, all
    ///     entries are missing.
    /// - Throws: `ClientServiceError`: `store`; `invalidArgument` for another name, a capacity below 1,000 bytes, or
    ///   encryption without a key.
    public func diskCache(
        name: String, capacity: Int, isPerUser: Bool = false, isEncrypted: Bool = false
    ) throws(ClientServiceError) -> DiskCache {
        guard name.wholeMatch(of: /[A-Za-z0-9_-]{1,64}/) != nil else {
            throw ClientServiceError(.invalidArgument, "a cache's name must have 1 to 64 letters, digits, - or _")
        }
        guard capacity >= 1_000 else {
            throw ClientServiceError(.invalidArgument, "a cache's capacity must be at least 1,000 bytes")
        }
        let cipher = isEncrypted ? store.cipher : nil
        guard !isEncrypted || cipher != nil else {
            throw ClientServiceError(.invalidArgument, "encryption needs a key; pass one to the ServiceStore")
        }
        return try DiskCache(
            file: store.folder.appendingPathComponent("cache-\(name).sqlite"), capacity: capacity, cipher: cipher,
            owner: { isPerUser ? self.lastUserID : ServiceItems.common }, now: now)
    }
}
