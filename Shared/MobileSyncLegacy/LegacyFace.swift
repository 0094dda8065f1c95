package import Logging
import MobileSync
import SyncModel
import Synchronization

/// What both faces do: the app's one client, its user, and who takes which data. All of their static state is here.
package final class LegacyFace: Sendable {
    /// The face that the static methods speak for: an app has one. Tests play several processes of an app, each with its
    /// own, and what a face's task calls is of that face too.
    @TaskLocal package static var shared = LegacyFace()

    /// What `sessionId` is when the app has none (spec K2).
    static let defaultSession = "SESSION_DEMO"

    private struct Taker {
        /// Nil while nobody is registered.
        var handler: (@Sendable (SyncMessage) -> Void)?
        let reading: AsyncStream<Bool>.Continuation
    }

    private struct State {
        var application: MPSyncApplication?
        var isStarting = false
        var run: LegacyRun?
        var takers: [String: Taker] = [:]
        var boundUserID: String?
        var loggedUserID: String?
        var userIDProvider: (@Sendable () -> String?)?
        /// Calls that came before the start and were said so.
        var complaints: Set<String> = []
    }

    private let state = Mutex(State())
    private let logger: Logger
    /// Who listens to which notifications of the iOS face.
    let observers = BizObservers()

    /// A face that has not been started.
    package init(logger: Logger = Logger(label: "mobile-sync")) { self.logger = logger }

    // MARK: Start

    /// What the next start uses; nil asks the platform.
    func setUp(_ application: MPSyncApplication?) { state.withLock { $0.application = application } }

    /// Starts the client, once; later calls change nothing. A failure is logged, and it can be tried again.
    ///
    /// - Parameters:
    ///   - backgroundTime: how long the connection stays when the app is in the background.
    ///   - startsInBackground: nothing connects before the app says that it is in the foreground.
    func start(backgroundTime: Duration, startsInBackground: Bool) {
        let (isMine, application) = state.withLock { state in
            guard state.run == nil, !state.isStarting else { return (false, state.application) }
            state.isStarting = true
            return (true, state.application)
        }
        guard isMine else { return }
        var run: LegacyRun?
        do throws(SyncError) {
            let application = if let application { application } else { try MPSyncApplication.main() }
            run = try LegacyRun(
                application, backgroundTime: backgroundTime, startsInBackground: startsInBackground, logger: logger,
                deliver: { [weak self] in self?.deliver($0) })
        } catch {
            logger.error("mobile sync cannot start", metadata: ["error": "\(error)"])
        }
        state.withLock { state in
            state.run = run
            state.isStarting = false
        }
    }

    /// Ends the client, as the end of the process would, but after what was confirmed is on the disk.
    package func shutDown() async {
        let run = state.withLock { state in
            defer { state = State() }
            return state.run
        }
        observers.removeAll()
        await run?.stop()
    }

    // MARK: Connection

    /// The device's id; nil before the start.
    var deviceID: String? { state.withLock { $0.run?.deviceID } }

    /// Where the connection is; not available before the start.
    var status: SyncStatus { state.withLock { $0.run?.client.status } ?? .notAvailable }

    /// The app came to the foreground, or left it.
    func setForeground(_ isForeground: Bool, call: String) {
        started(call)?.client.setForeground(isForeground)
    }

    // MARK: User

    /// Notes who is signed in.
    func setUserID(_ userID: String?) { state.withLock { $0.loggedUserID = userID } }

    /// Notes who knows who is signed in.
    func setUserIDProvider(_ provider: (@Sendable () -> String?)?) { state.withLock { $0.userIDProvider = provider } }

    /// Who is signed in, as the app says; never empty.
    var userID: String? {
        let (provider, logged) = state.withLock { ($0.userIDProvider, $0.loggedUserID) }
        // The provider is the app's code, which may call us: not under the lock.
        return [provider?(), logged].lazy.compactMap { $0 }.first { !$0.isEmpty }
    }

    /// Binds the signed-in user; another one who was bound is unbound first.
    ///
    /// - Returns: false before the start, without a user, or when an id is not usable.
    func bind(sessionID: String?, call: String) -> Bool {
        guard started(call) != nil else { return false }
        guard let userID else {
            logger.warning("nobody to bind: no user id is set", metadata: ["call": "\(call)"])
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
        if let failure { logger.error("the user is not bound", metadata: ["error": "\(failure)"]) }
        return failure == nil
    }

    /// Binds nobody.
    func unbind(call: String) {
        guard started(call) != nil else { return }
        state.withLock { state in
            state.run?.client.unbind()
            state.boundUserID = nil
        }
    }

    // MARK: Data

    /// Whether there is a start, and a Sync ID can have this name.
    func canRegister(_ bizType: String, call: String) -> Bool {
        started(call) != nil && (1...Limits.bizTypeUnits).contains(bizType.utf16.count)
    }

    /// Hands the data of a Sync ID to the handler from now on, instead of another.
    ///
    /// - Returns: false before the start, or when no Sync ID can have this name.
    func register(_ bizType: String, call: String, _ handler: @escaping @Sendable (SyncMessage) -> Void) -> Bool {
        guard canRegister(bizType, call: call) else { return false }
        return state.withLock { state in
            guard let run = state.run else { return false }
            var taker = state.takers[bizType] ?? Taker(reading: run.reader(of: bizType))
            if taker.handler == nil { taker.reading.yield(true) }
            taker.handler = handler
            state.takers[bizType] = taker
            return true
        }
    }

    /// Nobody takes the Sync ID any more: its data waits in the local store.
    ///
    /// - Returns: whether somebody did.
    @discardableResult func unregister(_ bizType: String, call: String) -> Bool {
        guard started(call) != nil else { return false }
        return state.withLock { state in
            guard state.takers[bizType]?.handler != nil else { return false }
            state.takers[bizType]?.handler = nil
            state.takers[bizType]?.reading.yield(false)
            return true
        }
    }

    /// Hands a batch to who takes it now; otherwise it is not confirmed and comes again.
    private func deliver(_ message: SyncMessage) {
        let handler = state.withLock { state -> (@Sendable (SyncMessage) -> Void)? in
            // The user may have changed since the batch was read.
            if let user = message.userId, state.boundUserID?.isSame(as: user) != true { return nil }
            return state.takers[message.biz]?.handler
        }
        handler?(message)
    }

    /// The app has processed a message: nothing of it comes again. On the disk a moment after this returns.
    func confirm(_ message: SyncMessage, call: String) { started(call)?.confirm(message) }

    /// The run, or nil with a word in the log, once for each call, that there is none.
    func started(_ call: String) -> LegacyRun? {
        let (run, isNews) = state.withLock { state in
            (state.run, state.run == nil && state.complaints.insert(call).inserted)
        }
        if isNews { logger.warning("called before the start; nothing is done", metadata: ["call": "\(call)"]) }
        return run
    }
}
