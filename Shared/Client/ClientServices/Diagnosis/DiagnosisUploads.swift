import Concurrency
import Foundation
public import Logging
import MobileSync

/// Uploads the device's log when an operator requests it: collects the log, splits it into parts and sends each part
/// until the server accepts it.
///
/// Tasks and the number of uploaded parts survive restarts. `run()` does the work; the app runs it in a task.
public final class DiagnosisUploads: PushReceiver {
    /// The default Sync ID of the commands. It needs a configuration of kind device.
    public static let syncID = "MSS_DIAGNOSIS"

    private struct State {
        var agenda: DiagnosisAgenda
        var network = NetworkKind.unknown
        /// The id of the task whose log is being collected.
        var collecting: String?
        /// The statuses that listeners already have.
        var announced: [String: DiagnosisStatus] = [:]
        var isRunning = false
    }

    private let store: ServiceStore
    private let collector: DiagnosisCollector
    private let uploader: any DiagnosisUploader
    private let logger: Logger
    private let now: @Sendable () -> ContinuousClock.Instant
    private let sleep: @Sendable (Duration) async -> Void
    /// The tasks change only inside a transaction of the store.
    private let state: LockedValue<State>
    private let listeners = EventBroadcaster<DiagnosisReport>(buffer: ServiceLimits.unreadElements)
    /// Wakes `run()`: a step has become possible or forbidden.
    private let wakes = EventBroadcaster<Void>(buffer: 1)

    /// Opens the service and reads the stored tasks.
    ///
    /// - Parameters:
    ///   - log: the log to collect from.
    ///   - logger: for log lines of this service; it can write to the same log.
    /// - Throws: `ClientServiceError`: `store`; `invalidArgument` when `partBytes` is below 1,000 or above 10,000,000.
    public convenience init(
        store: ServiceStore, log: DiagnosisLog, uploader: any DiagnosisUploader,
        settings: DiagnosisSettings = DiagnosisSettings(), logger: Logger
    ) throws(ClientServiceError) {
        try self.init(
            store: store, log: log, uploader: uploader, settings: settings, logger: logger,
            now: { .now }, sleep: { try? await Task.sleep(for: $0) })
    }

    init(
        store: ServiceStore, log: DiagnosisLog, uploader: any DiagnosisUploader, settings: DiagnosisSettings,
        logger: Logger, now: @escaping @Sendable () -> ContinuousClock.Instant,
        sleep: @escaping @Sendable (Duration) async -> Void
    ) throws(ClientServiceError) {
        guard (1_000...10_000_000).contains(settings.partBytes) else {
            throw ClientServiceError(.invalidArgument, "partBytes must be 1,000 to 10,000,000")
        }
        self.store = store
        self.uploader = uploader
        self.logger = logger
        self.now = now
        self.sleep = sleep
        collector = DiagnosisCollector(
            log: log, folder: store.folder.appendingPathComponent("diagnosis"), settings: settings)
        let tasks = try store.read("reading the diagnosis tasks") { items in
            try items.all(.diagnosis).map { try JSONDecoder().decode(DiagnosisTask.self, from: $0.body) }
        }
        state = LockedValue(State(agenda: DiagnosisAgenda(tasks: tasks)))
        collector.deleteAll(but: tasks.compactMap(\.bundle))
        state.withLock { $0.announced = Self.statuses($0) }
    }

    // MARK: Commands and network changes

    /// Applies an operator's command. `run()` does the work.
    ///
    /// - Throws: `ClientServiceError.store`; nothing is changed then.
    public func take(_ payload: [UInt8], userID: String? = nil) throws(ClientServiceError) -> PushOutcome {
        let command: DiagnosisCommand
        do { command = try DiagnosisCommand(payload) } catch { return .refused(error.reason) }
        guard command.action == .delete || state.withLock({ $0.agenda.canAddTask }) else {
            return .refused("\(ServiceLimits.tasks) tasks are not finished; the limit is reached")
        }
        return try change("storing a diagnosis command") { $0.apply(command) } ? .applied : .known
    }

    /// Sets the kind of the current network. The app must call it at start and at each change. Before the first call,
    /// nothing that is for Wi-Fi only is uploaded.
    public func networkChanged(to network: NetworkKind) {
        state.withLock { state in
            guard state.network != network else { return }
            state.network = network
            state.agenda.networkChanged()
        }
        announce()
    }

    /// All known tasks, the oldest first.
    public var tasks: [DiagnosisReport] {
        state.withLock { state in
            let statuses = Self.statuses(state)
            return state.agenda.tasks.values.sorted { $0.order < $1.order }.compactMap { task in
                statuses[task.command.taskID].map { DiagnosisReport(command: task.command, status: $0) }
            }
        }
    }

    /// A new stream of changed tasks. A reader that is more than 64 elements behind loses the oldest.
    public var changes: AsyncStream<DiagnosisReport> { listeners.listen() }

    // MARK: Work

    /// Collects and uploads until the task is cancelled, then returns.
    ///
    /// - Throws: `ClientServiceError.alreadyRunning`.
    @concurrent public func run() async throws(ClientServiceError) {
        let isRunning = state.withLock { state in
            defer { state.isRunning = true }
            return state.isRunning
        }
        guard !isRunning else { throw ClientServiceError(.alreadyRunning, "run() is already running for this service") }
        defer { state.withLock { $0.isRunning = false } }
        while !Task.isCancelled {
            // Listens before it chooses a step, so that no change is missed.
            let wakes = wakes.listen()
            let step = state.withLock { $0.agenda.next(on: $0.network, at: now()) }
            switch step {
            case .wait(let until): await pause(until: until, or: wakes)
            case .collect(let task): collect(task)
            case .send(let task, let bundle, let number):
                await send(number, of: bundle, for: task, or: wakes, during: step)
            case .reportRefusal(let task, let reason): await reportRefusal(of: task, reason, or: wakes, during: step)
            }
        }
    }

    private func pause(until: ContinuousClock.Instant?, or wakes: AsyncStream<Void>) async {
        let delay = until.map { now().duration(to: $0) }
        await withTaskGroup(of: Void.self) { group in
            if let delay { group.addTask { [sleep] in await sleep(delay) } }
            group.addTask { for await _ in wakes { return } }
            await group.next()
            group.cancelAll()
        }
    }

    private func collect(_ task: DiagnosisTask) {
        state.withLock { $0.collecting = task.command.taskID }
        announce()
        let result = collector.collect(task.command)
        state.withLock { $0.collecting = nil }
        defer { announce() }
        switch result {
        case .success(let bundle):
            if !replace(task, by: .collected(bundle, taken: 0)) { collector.delete(bundle) }
        case .failure(let reason): _ = replace(task, by: .refused(reason, isTold: false))
        }
    }

    private func send(
        _ number: Int, of bundle: DiagnosisBundle, for task: DiagnosisTask, or wakes: AsyncStream<Void>,
        during step: DiagnosisStep
    ) async {
        guard let part = collector.part(number, of: bundle, for: task) else {
            logger.warning(
                "the file of a collected log is lost; the log is collected again",
                metadata: ["task": "\(task.command.taskID)"])
            _ = replace(task, by: .waiting)
            return
        }
        let answer = await unlessForbidden(step, wakes) { [uploader] in try await uploader.submit(part) }
        switch answer {
        case .success(.taken):
            _ = replace(task, by: number == bundle.parts ? .done : .collected(bundle, taken: number))
        case .success(.refused(let reason)): _ = replace(task, by: .refused(.byServer(reason), isTold: true))
        case .failure(let error): failed(task, error)
        case nil: break
        }
    }

    private func reportRefusal(
        of task: DiagnosisTask, _ reason: DiagnosisRefusal, or wakes: AsyncStream<Void>, during step: DiagnosisStep
    ) async {
        let answer = await unlessForbidden(step, wakes) { [uploader] in
            try await uploader.refuse(taskID: task.command.taskID, run: task.command.run, reason: reason)
        }
        switch answer {
        case .success: _ = replace(task, by: .refused(reason, isTold: true))
        case .failure(let error): failed(task, error)
        case nil: break
        }
    }

    /// Does the work while its step is permitted; nil: the work was cancelled because the step is not permitted any
    /// more.
    private func unlessForbidden<Value: Sendable>(
        _ step: DiagnosisStep, _ wakes: AsyncStream<Void>, _ work: @escaping @Sendable () async throws -> Value
    ) async -> Result<Value, any Error>? {
        await withTaskGroup(of: Result<Value, any Error>?.self) { group in
            group.addTask { do { return .success(try await work()) } catch { return .failure(error) } }
            group.addTask { [self] in
                for await _ in wakes where !permits(step) { return nil }
                return nil
            }
            let first = await group.next() ?? nil
            group.cancelAll()
            // The end of `run()` cancels the work, which is not a failure.
            if Task.isCancelled, case .failure = first { return nil }
            return first
        }
    }

    private func permits(_ step: DiagnosisStep) -> Bool {
        state.withLock { $0.agenda.permits(step, on: $0.network) }
    }

    private func failed(_ task: DiagnosisTask, _ error: any Error) {
        logger.info(
            "a diagnosis step failed; it is repeated later",
            metadata: ["task": "\(task.command.taskID)", "error": "\(error)"])
        state.withLock { $0.agenda.failed(task, at: now()) }
    }

    // MARK: State

    /// Stores the next phase of a task.
    ///
    /// - Returns: whether the task was unchanged and the new phase is on disk.
    private func replace(_ task: DiagnosisTask, by phase: DiagnosisTask.Phase) -> Bool {
        do {
            return try change("storing a diagnosis task") { $0.replace(task, by: phase) }
        } catch {
            failed(task, error)
            return false
        }
    }

    /// Changes a task in memory and in the store together. A bundle that the changed task does not use any more is
    /// deleted.
    ///
    /// - Returns: whether a task was changed.
    private func change(
        _ doing: String, _ body: (inout DiagnosisAgenda) -> DiagnosisTask?
    ) throws(ClientServiceError) -> Bool {
        let former = try store.write(
            doing,
            { items -> (isChanged: Bool, bundle: DiagnosisBundle?) in
                let before = state.withLock { $0.agenda }
                var agenda = before
                guard let task = body(&agenda) else { return (false, nil) }
                try items.put(try JSONEncoder().encode(task), .diagnosis, key: task.command.taskID)
                for id in agenda.forgetOldest() { try items.remove(.diagnosis, key: id) }
                let bundle = before.tasks[task.command.taskID]?.bundle
                return (true, bundle == task.bundle ? nil : bundle)
            },
            committed: { change in
                guard change.isChanged else { return }
                // Inside the transaction the tasks are the same as above, so the change applies again. Pauses and the
                // network can have changed.
                state.withLock { state in
                    _ = body(&state.agenda)
                    _ = state.agenda.forgetOldest()
                }
            })
        former.bundle.map(collector.delete)
        if former.isChanged { announce() }
        return former.isChanged
    }

    /// Notifies listeners of changed statuses and wakes `run()`.
    private func announce() {
        let changed = state.withLock { state in
            let statuses = Self.statuses(state)
            defer { state.announced = statuses }
            return statuses.compactMap { id, status in
                state.announced[id] == status
                    ? nil : state.agenda.tasks[id].map { DiagnosisReport(command: $0.command, status: status) }
            }
        }
        for report in changed { listeners.send(report) }
        wakes.send(())
    }

    private static func statuses(_ state: State) -> [String: DiagnosisStatus] {
        state.agenda.tasks.mapValues { task in
            task.status(on: state.network, isCollecting: state.collecting == task.command.taskID)
        }
    }
}
