import Foundation
import Logging
import MobileSync

/// One running client of the compatibility APIs: its connection, a reader for each Sync ID, and confirmations in order.
final class LegacyRun: Sendable {
    private enum Command: Sendable {
        /// Read a Sync ID while the last value of the switch is true.
        case serve(bizType: String, switches: AsyncStream<Bool>)
        case confirm(SyncMessage)
    }

    /// The wait of a reader after an error of the local store.
    private static let pauseAfterFailure = Duration.seconds(10)

    let client: SyncClient
    /// The device id that the service knows.
    var deviceID: String { client.deviceID }
    /// Unbounded here: an app can confirm only messages that it holds in memory itself.
    private let commands: AsyncStream<Command>.Continuation
    private let task: Task<Void, Never>

    /// Opens the local store and starts the client.
    ///
    /// - Parameters:
    ///   - application: the app's settings and files.
    ///   - backgroundTime: the time for which the connection stays open in the background.
    ///   - startsInBackground: whether to wait with the connection until the app reports the foreground.
    ///   - followsSystem: as of `SyncApp`.
    ///   - logger: receives the log lines.
    ///   - deliver: receives each batch, in order for each Sync ID.
    /// - Throws: `SyncError` when the application's settings or files cannot be used.
    init(
        _ application: MPSyncApplication, backgroundTime: Duration, startsInBackground: Bool, followsSystem: Bool,
        logger: Logger, deliver: @escaping @Sendable (SyncMessage) -> Void
    ) throws(SyncError) {
        var configuration = application.metaConfig.clientConfiguration(
            deviceID: try application.loadDeviceID(), storePath: application.store.path, trust: application.trust)
        configuration.deviceSecret = try DeviceIdentifier.loadSecret()
        configuration.operatingSystemName = application.operatingSystemName
        configuration.appVersion = application.appVersion
        configuration.firstResend = application.firstResend
        configuration.backgroundTime = backgroundTime
        let client = try SyncClient(configuration: configuration, logger: logger)
        if startsInBackground { client.setForeground(false) }
        self.client = client
        let app = SyncApp(client: client, followsSystem: followsSystem, logger: logger)
        let (stream, commands) = AsyncStream.makeStream(of: Command.self)
        self.commands = commands
        // The methods of the compatibility APIs return at once and have no task of the caller. So this object owns a
        // task, and `stop` ends it.
        task = Task {
            app.start()
            await withTaskGroup(of: Void.self) { group in
                for await command in stream {
                    switch command {
                    case .serve(let bizType, let switches):
                        group.addTask { await Self.serve(bizType, of: client, switches, logger, deliver) }
                    case .confirm(let message):
                        await Self.confirm(message, logger)
                    }
                }
                group.cancelAll()
            }
            await app.stop()
        }
    }

    /// Creates a reader for a Sync ID, once for each. It reads while the last value that was sent is true.
    func reader(of bizType: String) -> AsyncStream<Bool>.Continuation {
        let (switches, continuation) = AsyncStream.makeStream(of: Bool.self)
        commands.yield(.serve(bizType: bizType, switches: switches))
        return continuation
    }

    /// Queues the confirmation of a message behind earlier ones.
    func confirm(_ message: SyncMessage) { commands.yield(.confirm(message)) }

    /// Ends all tasks, after the confirmations so far are on the disk.
    func stop() async {
        commands.finish()
        await task.value
    }

    /// Reads while the switch is on. One reader ends before the next begins, so that callbacks keep their order.
    private static func serve(
        _ bizType: String, of client: SyncClient, _ switches: AsyncStream<Bool>, _ logger: Logger,
        _ deliver: @escaping @Sendable (SyncMessage) -> Void
    ) async {
        while let isOn = await switches.nextElement() {
            guard isOn else { continue }
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await read(bizType, of: client, logger, deliver) }
                while await switches.nextElement() == true {}
                group.cancelAll()
            }
        }
    }

    private static func read(
        _ bizType: String, of client: SyncClient, _ logger: Logger, _ deliver: @Sendable (SyncMessage) -> Void
    ) async {
        while !Task.isCancelled {
            do {
                for try await batch in client.batches(of: bizType) { deliver(SyncMessage(batch, of: client)) }
            } catch {
                logger.error("reading data failed", metadata: ["bizType": "\(bizType)", "error": "\(error)"])
                try? await Task.sleep(for: pauseAfterFailure)
            }
        }
    }

    private static func confirm(_ message: SyncMessage, _ logger: Logger) async {
        do {
            try await message.client.confirm(message.batch)
        } catch {
            logger.error(
                "confirming a message failed; its data arrives again",
                metadata: ["id": "\(message.id)", "error": "\(error)"])
        }
    }
}
