import BusMessages
import CRabbitMQ
import ChildProcesses
import Foundation
import Glibc
import TestSupport

@testable import AMQP

/// A separate broker that has loaded our definitions; every user's password is `test`.
struct OwnBroker {
    let port: Int
    private let folder: URL
    private let script: URL
    private let node: ChildProcess

    /// The hash of the password "test" with the salt "salt".
    private static let passwordHash = "c2FsdBvBo2HxcJK8evSy+Cv5GU6p7iyknrLlPjn1Vbwe6u10"

    /// Runs the body with a broker on a free port, in a temporary folder.
    ///
    /// - Parameters:
    ///   - factsMax: the maximum length of the queue of facts, in bodies.
    ///   - isReplicated: whether the queues of facts are quorum queues.
    static func with(
        factsMax: Int = BrokerDefinitions.factsMax, isReplicated: Bool = false,
        _ body: (OwnBroker) async throws -> Void
    ) async throws {
        try await SecureServer.turnstile.pass { try await serve(factsMax, isReplicated, body) }
    }

    private static func serve(
        _ factsMax: Int, _ isReplicated: Bool, _ body: (OwnBroker) async throws -> Void
    ) async throws {
        let root = ProjectFolder.url
        let script = root.appending(path: "deploy/scripts/rabbitmq.sh")
        // The broker also uses the next two ports.
        let port = try FreePorts.find(3)[0]
        let folder = FileManager.default.temporaryDirectory.appending(path: "mss-broker-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let hashes = Dictionary(uniqueKeysWithValues: BusTier.allCases.map { ($0, passwordHash) })
        let definitions = folder.appending(path: "given.json")
        try BrokerDefinitions(
            virtualHost: "/", passwordHashes: hashes, factsMax: factsMax, isReplicated: isReplicated
        ).json().write(to: definitions)
        let environment = environment(of: folder)
        let made = try await Command.run(
            script, ["init", folder.path, "\(port)", definitions.path], environment: environment)
        guard made.status == 0 else { throw Failure("rabbitmq.sh init: \(made.output)") }
        let node = try ChildProcess([script.path, "run", folder.path], environment: environment, output: .discarded)
        var failure: (any Error)?
        do {
            try await eventually("a broker with definitions", within: .seconds(60)) {
                (try? await Command.run(script, ["ready", folder.path], environment: environment).status) == 0
            }
            try await body(OwnBroker(port: port, folder: folder, script: script, node: node))
        } catch {
            failure = error
        }
        try await SecureServer.end(.rabbitmq, node)
        // The node's port mapper does not end with the broker.
        _ = try? await Command.run(
            URL(fileURLWithPath: "/usr/bin/env"), ["epmd", "-port", "\(port + 2)", "-kill"], environment: environment)
        if let failure { throw failure }
    }

    private static func environment(of folder: URL) -> [String: String] {
        SecureServer.environment.merging(["HOME": folder.path]) { $1 }
    }

    /// Sends a signal to the node.
    func signal(_ number: Int32) { node.signal(number) }

    /// Runs `rabbitmqctl`.
    func control(_ arguments: String...) async throws {
        let done = try await Command.run(
            script, ["ctl", folder.path] + arguments,
            environment: Self.environment(of: folder))
        guard done.status == 0 else { throw Failure("\(arguments): \(done.output)") }
    }

    /// Deletes a queue, on a separate connection.
    static func delete(_ queue: String, at server: AMQPConfiguration) throws {
        let watchdog = Watchdog()
        defer { watchdog.stop() }
        let connection = try AMQPConnection(server, at: server.addresses[0], generation: 1, watchdog: watchdog)
        defer { connection.close() }
        queue.withCString { name in
            _ = amqp_queue_delete(connection.state, 1, amqp_cstring_bytes(name), 0, 0)
        }
        try connection.check("delete \(queue)")
    }

    /// Whether the broker permits an action of a user, on a separate connection. A refusal closes the channel; other
    /// errors are ignored.
    func lets(
        _ user: String, password: String = "test", _ body: (AMQPConnection) throws(AMQPError) -> Void
    ) throws -> Bool {
        let configuration = AMQPConfiguration(host: "127.0.0.1", port: port, user: user, password: password)
        let watchdog = Watchdog()
        defer { watchdog.stop() }
        do throws(AMQPError) {
            let connection = try AMQPConnection(
                configuration, at: configuration.addresses[0], generation: 1, watchdog: watchdog)
            defer { connection.close() }
            try body(connection)
            return true
        } catch {
            if error.message.contains("ACCESS_REFUSED") { return false }
            guard ["NOT_FOUND", "PRECONDITION_FAILED"].contains(where: error.message.contains) else { throw error }
            return true
        }
    }

    /// Declares a direct exchange; no process of the service does that.
    static func declare(_ exchange: String, on connection: AMQPConnection) throws(AMQPError) {
        exchange.withCString { name in
            "direct".withCString { kind in
                _ = amqp_exchange_declare(
                    connection.state, 1, amqp_cstring_bytes(name), amqp_cstring_bytes(kind), 0, 1, 0, 0,
                    amqp_empty_table)
            }
        }
        try connection.check("declare \(exchange)")
    }

    /// Publishes and waits for the broker's confirmation.
    static func publish(to exchange: String, key: String = "nobody", on connection: AMQPConnection) throws(AMQPError) {
        let route = AMQPRoute(
            exchange: exchange, routingKey: key, expiration: nil, isPersistent: false, isMandatory: false,
            replyTo: nil)
        try connection.publish([1], on: route, confirmed: true)
        while true {
            if case .confirmed? = try connection.receive() { return }
            var descriptor = pollfd(fd: connection.descriptor, events: Int16(POLLIN), revents: 0)
            guard poll(&descriptor, 1, 10_000) > 0 else {
                throw AMQPError(code: .connection, message: "no confirmation from the broker in 10 s")
            }
        }
    }
}
