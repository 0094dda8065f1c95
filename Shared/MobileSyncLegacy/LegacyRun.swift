import Foundation
import Logging
import MobileSync

/// One client at work for the faces: its connection, a reader for each Sync ID, and confirmations in order.
final class LegacyRun: Sendable {
    private enum Order: Sendable {
        /// Read a Sync ID while the last switch was on.
        case serve(bizType: String, switches: AsyncStream<Bool>)
        case confirm(SyncMessage)
    }

    /// How long a reader waits after the local store has failed.
    private static let pauseAfterFailure = Duration.seconds(10)

    let client: SyncClient
    /// The device as the service knows it.
    var deviceID: String { client.deviceID }
    /// Unbounded; an app can only confirm what it was handed out, and keeps that in memory itself.
    private let orders: AsyncStream<Order>.Continuation
    private let task: Task<Void, Never>

    /// Opens the local store and begins to run.
    ///
    /// - Parameters:
    ///   - backgroundTime: how long the connection stays when the app is in the background.
    ///   - startsInBackground: nothing connects before the app says that it is in the foreground.
    ///   - deliver: takes each batch, in order per Sync ID.
    /// - Throws: `SyncError` when the application's settings or files cannot be used.
    init(
        _ application: MPSyncApplication, backgroundTime: Duration, startsInBackground: Bool, logger: Logger,
        deliver: @escaping @Sendable (SyncMessage) -> Void
    ) throws(SyncError) {
        Self.prepare(application.folder)
        let deviceID = try DeviceIdentifier.load(from: application.folder)
        var configuration = application.metaConfig.clientConfiguration(
            deviceID: deviceID, storePath: application.store.path, trust: application.trust)
        configuration.operatingSystemName = application.operatingSystemName
        configuration.appVersion = application.appVersion
        configuration.firstResend = application.firstResend
        configuration.backgroundTime = backgroundTime
        let client = try SyncClient(configuration: configuration, logger: logger)
        if startsInBackground { client.setForeground(false) }
        self.client = client
        let (stream, orders) = AsyncStream.makeStream(of: Order.self)
        self.orders = orders
        // The faces' methods return at once and have no task of the caller's to run in, so here, and only here, a task
        // has an object as its parent: this one, which ends it in `stop`.
        task = Task {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await Self.connect(client, logger) }
                for await order in stream {
                    switch order {
                    case .serve(let bizType, let switches):
                        group.addTask { await Self.serve(bizType, of: client, switches, logger, deliver) }
                    case .confirm(let message):
                        await Self.confirm(message, logger)
                    }
                }
                group.cancelAll()
            }
        }
    }

    /// Makes the folder; what wants to write there tells when it cannot be made.
    private static func prepare(_ folder: URL) {
        try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        #if canImport(Darwin)
            // Restored on another device, the device id would be there twice. Not run here.
            var (folder, values) = (folder, URLResourceValues())
            values.isExcludedFromBackup = true
            try? folder.setResourceValues(values)
        #endif
    }

    /// Makes a reader for a Sync ID, once for each; it reads while the last value sent was true.
    func reader(of bizType: String) -> AsyncStream<Bool>.Continuation {
        let (switches, continuation) = AsyncStream.makeStream(of: Bool.self)
        orders.yield(.serve(bizType: bizType, switches: switches))
        return continuation
    }

    /// Confirms a message, a moment later, after all that were confirmed before.
    func confirm(_ message: SyncMessage) { orders.yield(.confirm(message)) }

    /// Ends everything, after what was confirmed so far is on the disk.
    func stop() async {
        orders.finish()
        await task.value
    }

    private static func connect(_ client: SyncClient, _ logger: Logger) async {
        do {
            try await client.run()
        } catch {
            logger.error("no connection any more", metadata: ["error": "\(error)"])
        }
    }

    /// Reads whenever it is switched on. One reader ends before the next begins, so callbacks keep the order.
    private static func serve(
        _ bizType: String, of client: SyncClient, _ switches: AsyncStream<Bool>, _ logger: Logger,
        _ deliver: @escaping @Sendable (SyncMessage) -> Void
    ) async {
        var iterator = switches.makeAsyncIterator()
        while let isOn = await iterator.next(isolation: #isolation) {
            guard isOn else { continue }
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await read(bizType, of: client, logger, deliver) }
                while await iterator.next(isolation: #isolation) == true {}
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
                logger.error("data cannot be read", metadata: ["bizType": "\(bizType)", "error": "\(error)"])
                try? await Task.sleep(for: pauseAfterFailure)
            }
        }
    }

    private static func confirm(_ message: SyncMessage, _ logger: Logger) async {
        do {
            try await message.client.confirm(message.batch)
        } catch {
            logger.error("not confirmed; it comes again", metadata: ["id": "\(message.id)", "error": "\(error)"])
        }
    }
}
