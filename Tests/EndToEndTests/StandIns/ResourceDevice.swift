import Foundation
import Logging
import MobileSync
import OfflineResources
import Synchronization
import TestSupport

/// An app with offline resources on a device of the running system. A second object on the same files is a restart.
final class ResourceDevice: Sendable {
    /// The callbacks to the app, in order.
    final class Told: ResourceCallbacks {
        private let calls = Mutex<[(uri: String, text: String?, at: ContinuousClock.Instant)]>([])
        private let answers = Mutex<[(uri: String, text: String?, seen: Int)]>([])
        private let look: @Sendable () -> Int

        init(look: @escaping @Sendable () -> Int) { self.look = look }

        /// Answered offline edits: URI, body, and the value of `look` at that moment.
        var synchronized: [(uri: String, text: String?, seen: Int)] { answers.withLock { $0 } }
        /// URIs and bodies of changed resources; a nil body means deleted.
        var changes: [(uri: String, text: String?)] { calls.withLock { $0.map { ($0.uri, $0.text) } } }
        /// The time at which a resource first had this text; nil: never.
        func time(of uri: String, _ text: String) -> ContinuousClock.Instant? {
            calls.withLock { $0.first { $0.uri == uri && $0.text == text }?.at }
        }

        func offlineResourceSynchronized(uri: String, resource: Resource?) async {
            let seen = look()
            answers.withLock { $0.append((uri, resource.map { String(decoding: $0.body, as: UTF8.self) }, seen)) }
        }

        func cachedResourceChanged(uri: String, resource: Resource?) async {
            calls.withLock { $0.append((uri, resource.map { String(decoding: $0.body, as: UTF8.self) }, .now)) }
        }
    }

    let client: SyncClient
    let resources: ResourceClient
    let told: Told
    private let logger = Logger(label: "device") { _ in SwiftLogNoOpLogHandler() }

    /// - Parameters:
    ///   - backend: the port of the resources.
    ///   - gateway: the port of the service; nil: of the first gateway.
    ///   - policies: the text of a policy file; nil: the library's policies.
    ///   - look: reads the backend at each callback about an edit.
    init(
        _ stack: Stack, device: String, user: String, backend: Int, gateway: Int? = nil, policies: PolicyFile? = nil,
        look: @escaping @Sendable () -> Int = { 0 }
    ) throws {
        told = Told(look: look)
        let file = stack.folder.appending(path: device).path
        client = try SyncClient(
            configuration: SyncClientConfiguration(
                host: "127.0.0.1", port: gateway ?? stack.gateways[0], instanceID: Stack.clientInstance,
                deviceID: device, storePath: file + "-sync.sqlite",
                trust: .certificateAuthority(file: stack.certificateAuthority)),
            logger: logger)
        try client.bind(userID: user, sessionID: "session")
        var configuration = ResourceConfiguration(storePath: file + "-resources.sqlite", policyFile: policies)
        configuration.callbacks = told
        resources = try ResourceClient(
            configuration: configuration, transport: HTTPResourceTransport(baseURL: "http://127.0.0.1:\(backend)"),
            logger: logger)
        try resources.bind(userID: user)
    }

    /// Runs client and resources. The body starts when the client is connected and has its backlog.
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

    /// The device's copy of a resource, without a request.
    func cached(_ uri: String) async throws -> Resource? {
        try await resources.fetchObject(uri, policy: SyncPolicy(fetchPolicy: .fetchFromCache))
    }

    /// The body of the device's copy.
    func copy(_ uri: String) async throws -> String? {
        try await cached(uri).map { String(decoding: $0.body, as: UTF8.self) }
    }

    /// Waits until the device's copy of a resource has this body.
    func shows(_ uri: String, _ text: String) async throws {
        try await eventually("\(uri) is \(text)", within: .seconds(20)) { try await self.copy(uri) == text }
    }
}
