public import Logging
public import MobileSync

extension SyncAppPart {
    /// The part that sends edits, refreshes copies and applies pushes about resources. It binds the user of the
    /// resources, and passes the network on.
    public static func resources(_ resources: ResourceClient, logger: Logger) -> SyncAppPart {
        SyncAppPart(
            "resources", userChanged: { try resources.bind(userID: $0) },
            networkChanged: { resources.networkChanged(isAvailable: $0.isAvailable) },
            run: { client in
                try await runTogether(
                    { try await resources.run() }, { try await client.feed(resources, logger: logger) })
            })
    }
}
