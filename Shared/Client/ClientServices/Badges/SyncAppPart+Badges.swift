public import Logging
public import MobileSync

extension SyncAppPart {
    /// The part that applies pushes of badges, confirms the results of `BadgeTapOperations`, and shows the badges of
    /// the user who signs in.
    public static func badges(_ badges: Badges, logger: Logger) -> SyncAppPart {
        SyncAppPart(
            "badges", userChanged: { try badges.show(userID: $0) },
            run: { client in
                try await runTogether(
                    { try await client.feed(badges, of: Badges.syncID, logger: logger) },
                    { try await BadgeTapOperations(client: client, logger: logger).run() })
            })
    }
}
