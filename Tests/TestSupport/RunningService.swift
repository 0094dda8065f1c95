import Logging
package import ServiceLifecycle

/// Runs an HTTP server while the body runs, and then ends it gracefully: NIO crashes the process when a server is
/// cancelled while a client connects ("Deinited NIOAsyncWriter without calling finish()", swift-nio #2637).
///
/// Requests that are not answered 1 s after the end of the body are cancelled. An error of the server is ignored.
package func whileRunning<Value>(
    _ server: any Service, _ body: () async throws -> Value
) async throws -> Value {
    var configuration = ServiceGroupConfiguration(
        services: [server], logger: Logger(label: "server") { _ in SwiftLogNoOpLogHandler() })
    configuration.maximumGracefulShutdownDuration = .seconds(1)
    let group = ServiceGroup(configuration: configuration)
    return try await withThrowingTaskGroup(of: Void.self) { tasks in
        tasks.addTask { try? await group.run() }
        let result: Result<Value, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        await group.triggerGracefulShutdown()
        try await tasks.waitForAll()
        return try result.get()
    }
}
