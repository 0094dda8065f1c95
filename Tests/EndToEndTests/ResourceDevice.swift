import Foundation
import Logging
import MobileSync
import OfflineResources
import Synchronization
import TestSupport

/// An app with offline resources on a device of the running system; made anew, it is a restart.
final class ResourceDevice: Sendable {
    /// What the app was told of changes, in order.
    final class Told: ResourceCallbacks {
        private let calls = Mutex<[(uri: String, text: String?, at: ContinuousClock.Instant)]>([])

        /// URIs and bodies; nil: deleted.
        var changes: [(uri: String, text: String?)] { calls.withLock { $0.map { ($0.uri, $0.text) } } }
        /// When a resource came to have this text; nil: it has not.
        func time(of uri: String, _ text: String) -> ContinuousClock.Instant? {
            calls.withLock { $0.first { $0.uri == uri && $0.text == text }?.at }
        }

        func cachedResourceChanged(uri: String, resource: Resource?) async {
            calls.withLock { $0.append((uri, resource.map { String(decoding: $0.body, as: UTF8.self) }, .now)) }
        }
    }

    let client: SyncClient
    let resources: ResourceClient
    let told = Told()
    private let logger = Logger(label: "device") { _ in SwiftLogNoOpLogHandler() }

    /// - Parameters:
    ///   - backend: the port of the resources.
    ///   - gateway: the port of the service; nil: the first gateway's own.
    init(
        _ stack: Stack, device: String, user: String, backend: Int, gateway: Int? = nil
    ) throws {
        let file = stack.folder.appending(path: device).path
        client = try SyncClient(
            configuration: SyncClientConfiguration(
                host: "127.0.0.1", port: gateway ?? stack.gateways[0], instanceID: Stack.clientInstance,
                deviceID: device, storePath: file + "-sync.sqlite",
                trust: .certificateAuthority(file: stack.certificateAuthority)),
            logger: logger)
        try client.bind(userID: user, sessionID: "session")
        var configuration = ResourceConfiguration(storePath: file + "-resources.sqlite")
        configuration.callbacks = told
        resources = try ResourceClient(
            configuration: configuration, transport: HTTPResourceTransport(baseURL: "http://127.0.0.1:\(backend)"),
            logger: logger)
        try resources.bind(userID: user)
    }

    /// Runs everything while the body runs, which begins when there is a connection and all that waited is here.
    func running(_ body: () async throws -> Void) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { [client] in try await client.run() }
            group.addTask { [resources] in try await resources.run() }
            group.addTask { [client, resources, logger] in try await client.feed(resources, logger: logger) }
            try await eventually("the device has caught up", within: .seconds(20)) { self.client.isCaughtUp }
            try await body()
            group.cancelAll()
        }
    }

    /// A resource's body as it is here, whatever the service has.
    func copy(_ uri: String) async throws -> String? {
        try await resources.fetchObject(uri, policy: SyncPolicy(fetchPolicy: .fetchFromCache))
            .map { String(decoding: $0.body, as: UTF8.self) }
    }

    /// Waits until a resource has this body here.
    func shows(_ uri: String, _ text: String) async throws {
        try await eventually("\(uri) is \(text)", within: .seconds(20)) { try await self.copy(uri) == text }
    }
}
