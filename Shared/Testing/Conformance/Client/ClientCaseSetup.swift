import DeviceProtocol
import Foundation
import SwiftProtobuf
import Synchronization

/// The scripted gateway of one case, and the client program with a separate store.
final class ClientCaseSetup: Sendable {
    static let instance = "conformance_app"
    static let bizType = "CONFORM"
    static let appVersion = "3.4.5"
    static let session = "session-1"

    let bench: ClientBench
    let gateway: ScriptedGateway
    let program: ClientProgram
    let device: String
    let user: String
    private let folder: URL
    /// Number of connections that the script has already received from `next`.
    private let taken = Mutex(0)

    /// Starts the listener, not the program.
    init(_ bench: ClientBench) async throws {
        self.bench = bench
        let mark = String(UUID().uuidString.prefix(8))
        (device, user) = ("device-\(mark)", "user-\(mark)")
        folder = bench.folder.appending(path: mark)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        program = ClientProgram(folder: folder)
        gateway = try await ScriptedGateway.start(bench.authority, port: bench.port)
    }

    /// Stops the program and the listener.
    func end() async {
        await program.stop()
        await gateway.stop()
        try? FileManager.default.removeItem(at: folder)
    }

    // MARK: Program

    /// Starts the program.
    ///
    /// - Parameters:
    /// - store: name of the local store.
    /// - confirms: whether the app confirms oplogs.
    /// - port: port for the program. By default the port of this case's gateway.
    func start(
        user: String? = nil, store: String = "store", confirms: Bool = true, port: Int? = nil
    ) throws {
        var command = bench.command
        if !confirms {
            guard let more = bench.noConfirmArguments else { throw NotSupported("--no-confirm-arguments is missing") }
            command += more
        }
        try program.start(
            ClientBench.filled(
                command,
                [
                    "host": "127.0.0.1", "port": "\(port ?? gateway.port)", "ca": bench.authority.authorityFile,
                    "instance": Self.instance, "device": device, "user": user ?? self.user, "session": Self.session,
                    "store": folder.appending(path: store).path, "app-version": Self.appVersion,
                ]))
    }

    // MARK: Connections

    /// Waits for the next connection and its first frame.
    func next(of other: ScriptedGateway? = nil, within limit: Duration = .seconds(15)) async throws -> ClientSession {
        let deadline = ContinuousClock.now + limit
        let index = other == nil ? taken.withLock { $0 } : 0
        while true {
            let connections = (other ?? gateway).connections
            if connections.indices.contains(index),
                let session = ClientSession(connections[index])
            {
                if other == nil { taken.withLock { $0 = index + 1 } }
                return session
            }
            guard .now < deadline else {
                throw Mismatch(
                    expected: "a connection with Connect",
                    seen: "\(connections.count - index) more connections, exit status "
                        + "\(program.status.map { "\($0)" } ?? "none"); standard error: \(program.lastErrorLines)")
            }
            try await Task.sleep(for: .milliseconds(5))
        }
    }

    /// Starts the program and accepts its connection.
    func open(
        confirms: Bool = true, _ more: (inout Mss_Device_V1_Connected) -> Void = { _ in }
    ) async throws -> ClientSession {
        try start(confirms: confirms)
        return try await accept(more)
    }

    /// Accepts the next connection.
    func accept(_ more: (inout Mss_Device_V1_Connected) -> Void = { _ in }) async throws -> ClientSession {
        let session = try await next()
        session.accept(more)
        return session
    }

    /// Waits until the program ends the connection and connects again.
    func expectReturn(after session: ClientSession, within limit: Duration = .seconds(5)) async throws -> ClientSession
    {
        try await session.connection.expectEnd("the device ends the connection", within: limit)
        return try await next()
    }

    // MARK: Hand-outs

    /// Waits until the app has received exactly these oplogs, in this order.
    func expectShown(_ ids: [Int64], within limit: Duration = .seconds(10)) async throws {
        let deadline = ContinuousClock.now + limit
        while true {
            let seen = try program.shown().map(\.id)
            if seen == ids { return }
            guard .now < deadline, seen.count <= ids.count else {
                throw Mismatch(expected: "the app is handed \(ids)", seen: "\(seen)")
            }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Checks that the app receives exactly these oplogs, and no more some time later.
    func expectStillShown(_ ids: [Int64], after time: Duration = .milliseconds(400)) async throws {
        try await expectShown(ids)
        try await Task.sleep(for: time)
        try await expectShown(ids, within: .zero)
    }

    /// Checks that the device accepts, acknowledges and shows an oplog.
    func expectService(of session: ClientSession) async throws {
        session.push(0, 1, [1])
        try await session.expectAcknowledged(1)
        try await expectShown([1])
    }
}
