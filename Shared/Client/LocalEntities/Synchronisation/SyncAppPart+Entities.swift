public import Logging
public import MobileSync

extension SyncAppPart {
    /// The part that keeps a store synchronised (`EntitySynchroniser`). A sign-in of another user than the store's
    /// throws `EntityError.foreignStore`.
    public static func entities(_ store: EntityStore, logger: Logger) -> SyncAppPart {
        SyncAppPart(
            "entities",
            userChanged: { userID in
                guard let userID, !store.userID.isEmpty, !store.isOf(userID) else { return }
                throw EntityError(.foreignStore, "the store is of another user; open the store of this user")
            },
            run: { client in try await EntitySynchroniser(store: store, feed: client, logger: logger).run() })
    }
}
