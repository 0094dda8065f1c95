import Concurrency
import Foundation
package import Logging
import MobileSync
import SyncModel

/// The implementation of both compatibility APIs: the app's client, its user, and the handlers of its data. It holds
/// all their static state.
package final class CompatibilityCore: Sendable {
    /// The instance that the static methods use. An app has one. A test that plays several processes of an app gives
    /// each its own, also for the tasks of that process.
    @TaskLocal package static var shared = CompatibilityCore()

    /// The session id when the app passes none (K2).
    static let defaultSession = "SESSION_DEMO"

    private struct BizHandler {
        /// The value is nil while no handler is registered.
        var handler: (@Sendable (SyncMessage) -> Void)?
        let reading: AsyncStream<Bool>.Continuation
    }

    private struct State {
        var application: MPSyncApplication?
        var isStarting = false
        var run: LegacyRun?
        var bizHandlers: [String: BizHandler] = [:]
        var boundUserID: String?
        var loggedUserID: String?
        var interface = MPaaSInterface()
        /// The calls before the start that were logged.
        var loggedCalls: Set<String> = []
    }

    private let state = LockedValue(State())
    private let logger: Logger
    /// The observers of the iOS notifications.
    let observers = BizObservers()

    /// Creates an instance that is not started.
    package init(logger: Logger = Logger(label: "mobile-sync")) { self.logger = logger }

    // MARK: Start

    /// Sets the application for the next start; nil uses the platform's values.
    func setUp(_ application: MPSyncApplication?) { state.withLock { $0.application = application } }

    /// Starts the client once; later calls have no effect. A failure is logged, and the app can call again.
    ///
    /// - Parameters:
    ///   - backgroundTime: the time for which the connection stays open in the background.
    ///   - startsInBackground: whether to wait with the connection until the app reports the foreground.
    ///   - followsSystem: as of `SyncApp`.
    func start(backgroundTime: Duration, startsInBackground: Bool, followsSystem: Bool) {
        let (isFirst, application) = state.withLock { state in
            guard state.run == nil, !state.isStarting else { return (false, state.application) }
            state.isStarting = true
            return (true, state.application)
        }
        guard isFirst else { return }
        var run: LegacyRun?
        do throws(SyncError) {
            let application = if let application { application } else { try MPSyncApplication.main() }
            run = try LegacyRun(
                application, backgroundTime: backgroundTime, startsInBackground: startsInBackground,
                followsSystem: followsSystem, logger: logger, deliver: { [weak self] in self?.deliver($0) })
        } catch {
            logger.error("client start failed", metadata: ["error": "\(error)"])
        }
        state.withLock { state in
            state.run = run
            state.isStarting = false
        }
    }

    /// Stops the client as the end of the process would, after the confirmations so far are on the disk.
    package func shutDown() async {
        let run = state.withLock { state in
            defer { state = State() }
            return state.run
        }
        observers.removeAll()
        await run?.stop()
    }

    // MARK: Connection

    /// The client; nil before the start.
    var client: SyncClient? { state.withLock { $0.run?.client } }

    /// The device's id; nil before the start.
    var deviceID: String? { state.withLock { $0.run?.deviceID } }

    /// Returns the settings of a file. An error is logged, and the result is nil.
    func readMetaConfig(_ file: URL) -> MetaConfig? {
        do throws(SyncError) {
            return try MetaConfig(contentsOf: file)
        } catch {
            logger.error("meta.config cannot be used", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// Returns the device's id, before the start too. An error is logged, and the result is nil.
    func loadDeviceID() -> String? {
        if let deviceID { return deviceID }
        do throws(SyncError) {
            let application = state.withLock { $0.application }
            if let application { return try application.loadDeviceID() }
            return try MPSyncApplication.main().loadDeviceID()
        } catch {
            logger.error("the device id cannot be read", metadata: ["error": "\(error)"])
            return nil
        }
    }

    /// The status of the connection; `notAvailable` before the start.
    var status: SyncStatus { state.withLock { $0.run?.client.status } ?? .notAvailable }

    /// Reports that the app entered or left the foreground.
    func setForeground(_ isForeground: Bool, call: String) {
        started(call)?.client.setForeground(isForeground)
    }

    // MARK: User

    /// Sets the signed-in user.
    func setUserID(_ userID: String?) { state.withLock { $0.loggedUserID = userID } }

    /// The user that `setUserID` has set.
    var loggedUserID: String? { state.withLock { $0.loggedUserID } }

    /// The app's object that returns the signed-in user.
    var interface: MPaaSInterface { state.withLock { $0.interface } }

    /// Sets the app's object that returns the signed-in user.
    func setInterface(_ interface: MPaaSInterface) { state.withLock { $0.interface = interface } }

    /// The signed-in user, as the app reports it; never empty.
    var userID: String? {
        // The method is code of the app and can call this object, so it is called without the lock.
        let own = interface.userId()
        return [own, loggedUserID].lazy.compactMap { $0 }.first { !$0.isEmpty }
    }

    /// Binds the signed-in user, and unbinds another bound user first.
    ///
    /// - Returns: false before the start, without a signed-in user, or when an id is invalid.
    func bind(sessionID: String?, call: String) -> Bool {
        guard started(call) != nil else { return false }
        guard let userID else {
            logger.warning("cannot bind: no user id is set", metadata: ["call": "\(call)"])
            return false
        }
        let failure = state.withLock { state -> SyncError? in
            guard let client = state.run?.client else { return nil }
            if let bound = state.boundUserID, !bound.isSame(as: userID) {
                client.unbind()
                state.boundUserID = nil
            }
            do throws(SyncError) {
                try client.bind(userID: userID, sessionID: sessionID ?? Self.defaultSession)
                state.boundUserID = userID
                return nil
            } catch {
                return error
            }
        }
        if let failure { logger.error("bind failed", metadata: ["error": "\(failure)"]) }
        return failure == nil
    }

    /// Ends the bind.
    func unbind(call: String) {
        guard started(call) != nil else { return }
        state.withLock { state in
            state.run?.client.unbind()
            state.boundUserID = nil
        }
    }

    // MARK: Data

    /// Whether the client is started and the Sync ID is valid.
    func canRegister(_ bizType: String, call: String) -> Bool {
        started(call) != nil && (1...Limits.bizTypeUnits).contains(bizType.utf16.count)
    }

    /// Sets the handler of a Sync ID, and replaces an earlier one.
    ///
    /// - Returns: false before the start, or when the Sync ID is invalid.
    func register(_ bizType: String, call: String, _ handler: @escaping @Sendable (SyncMessage) -> Void) -> Bool {
        guard canRegister(bizType, call: call) else { return false }
        return state.withLock { state in
            guard let run = state.run else { return false }
            var bizHandler = state.bizHandlers[bizType] ?? BizHandler(reading: run.reader(of: bizType))
            if bizHandler.handler == nil { bizHandler.reading.yield(true) }
            bizHandler.handler = handler
            state.bizHandlers[bizType] = bizHandler
            return true
        }
    }

    /// Removes the handler of a Sync ID. Its data waits in the local store.
    ///
    /// - Returns: whether a handler was registered.
    @discardableResult func unregister(_ bizType: String, call: String) -> Bool {
        guard started(call) != nil else { return false }
        return state.withLock { state in
            guard state.bizHandlers[bizType]?.handler != nil else { return false }
            state.bizHandlers[bizType]?.handler = nil
            state.bizHandlers[bizType]?.reading.yield(false)
            return true
        }
    }

    /// Passes a batch to the present handler. Without one the batch stays unconfirmed, and arrives again.
    private func deliver(_ message: SyncMessage) {
        let handler = state.withLock { state -> (@Sendable (SyncMessage) -> Void)? in
            // The app may have bound another user since the batch was read.
            if let user = message.userId, state.boundUserID?.isSame(as: user) != true { return nil }
            return state.bizHandlers[message.biz]?.handler
        }
        handler?(message)
    }

    /// Confirms a message. The confirmation is on the disk shortly after the call returns.
    func confirm(_ message: SyncMessage, call: String) { started(call)?.confirm(message) }

    /// Returns the run; nil before the start, which is logged once for each call.
    func started(_ call: String) -> LegacyRun? {
        let (run, isNew) = state.withLock { state in
            (state.run, state.run == nil && state.loggedCalls.insert(call).inserted)
        }
        if isNew { logger.warning("ignored a call before the start of the client", metadata: ["call": "\(call)"]) }
        return run
    }
}
