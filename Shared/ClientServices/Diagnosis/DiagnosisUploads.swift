import Foundation
public import Logging
import Synchronization

/// Sends the device's log when an operator asks for it: collects, cuts into parts, and sends each until it is taken.
///
/// Tasks, and how many parts of them have been taken, survive restarts. `run()` does the work, in a task of the app's.
public final class DiagnosisUploads: PushReceiver {
    /// The commands' Sync ID, unless the app's backend has another: a configuration of kind device.
    public static let syncID = "MSS_DIAGNOSIS"

    private struct State {
        var agenda: DiagnosisAgenda
        var network = NetworkKind.unknown
        /// The id of the task that is being collected.
        var collecting: String?
        /// What listeners were last told.
        var announced: [String: DiagnosisStatus] = [:]
        var isRunning = false
    }

    private let store: ServiceStore
    private let collector: DiagnosisCollector
    private let uploader: any DiagnosisUploader
    private let logger: Logger
    private let now: @Sendable () -> ContinuousClock.Instant
    private let sleep: @Sendable (Duration) async -> Void
    /// Its tasks change only in the store's turn.
    private let state: Mutex<State>
    private let listeners = Listeners<DiagnosisReport>()
    /// Something may be to do now, or not to be done any more.
    private let wakes = Listeners<Void>(buffer: 1)

    /// Reads the tasks that are left from before.
    ///
    /// - Parameters:
    ///   - log: what is collected from.
    ///   - logger: for this service's own doings; may write to the same log.
    /// - Throws: `ClientServiceError`: `store`, `invalidArgument` for parts under 1,000 or over 10,000,000 bytes.
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
            throw ClientServiceError(.invalidArgument, "partBytes is 1,000 to 10,000,000")
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
        state = Mutex(State(agenda: DiagnosisAgenda(tasks: tasks)))
        collector.deleteAll(but: tasks.compactMap(\.bundle))
        state.withLock { $0.announced = Self.statuses($0) }
    }

    // MARK: What comes from outside

    /// Takes a command; its work begins when `run()` is at work.
    ///
    /// - Throws: `ClientServiceError.store`; nothing has changed.
    public func take(_ payload: [UInt8], userID: String? = nil) throws(ClientServiceError) -> PushOutcome {
        let command: DiagnosisCommand
        do { command = try DiagnosisCommand(payload) } catch { return .refused(error.reason) }
        guard command.action == .delete || state.withLock({ $0.agenda.hasRoom }) else {
            return .refused("\(ServiceLimits.tasks) tasks have work left already")
        }
        return try change("storing a diagnosis command") { $0.take(command) } ? .applied : .known
    }

    /// Says what network the device is on; to be called when that changes. Before the first call nothing is sent that
    /// is for Wi-Fi only.
    public func networkChanged(to network: NetworkKind) {
        state.withLock { state in
            guard state.network != network else { return }
            state.network = network
            state.agenda.networkChanged()
        }
        announce()
    }

    /// All tasks that are known, the oldest first.
    public var tasks: [DiagnosisReport] {
        state.withLock { state in
            let statuses = Self.statuses(state)
            return state.agenda.tasks.values.sorted { $0.order < $1.order }.compactMap { task in
                statuses[task.command.taskID].map { DiagnosisReport(command: task.command, status: $0) }
            }
        }
    }

    /// Tasks as they change from now on; a listener that is more than 64 behind loses the oldest.
    public var changes: AsyncStream<DiagnosisReport> { listeners.listen() }

    // MARK: The work

    /// Does what is to be done, until the task is cancelled; then it returns.
    ///
    /// - Throws: `ClientServiceError.alreadyRunning`.
    @concurrent public func run() async throws(ClientServiceError) {
        let isRunning = state.withLock { state in
            defer { state.isRunning = true }
            return state.isRunning
        }
        guard !isRunning else { throw ClientServiceError(.alreadyRunning, "run() is already at work on this service") }
        defer { state.withLock { $0.isRunning = false } }
        while !Task.isCancelled {
            // Listening comes first, so that nothing that happens from here on is missed.
            let wakes = wakes.listen()
            let step = state.withLock { $0.agenda.next(on: $0.network, at: now()) }
            switch step {
            case .wait(let until): await pause(until: until, or: wakes)
            case .collect(let task): collect(task)
            case .send(let task, let bundle, let number):
                await send(number, of: bundle, for: task, or: wakes, during: step)
            case .tell(let task, let reason): await tell(task, reason, or: wakes, during: step)
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
                "a collected log was lost; it is collected again", metadata: ["task": "\(task.command.taskID)"])
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

    private func tell(
        _ task: DiagnosisTask, _ reason: DiagnosisRefusal, or wakes: AsyncStream<Void>, during step: DiagnosisStep
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

    /// Does something as long as its step may go on; nil: it was given up.
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
            // At the end of `run()` the work fails too, and that is no failure.
            if Task.isCancelled, case .failure = first { return nil }
            return first
        }
    }

    private func permits(_ step: DiagnosisStep) -> Bool {
        state.withLock { $0.agenda.permits(step, on: $0.network) }
    }

    private func failed(_ task: DiagnosisTask, _ error: any Error) {
        logger.info(
            "a diagnosis upload is tried again later",
            metadata: ["task": "\(task.command.taskID)", "error": "\(error)"])
        state.withLock { $0.agenda.failed(task, at: now()) }
    }

    // MARK: State

    /// - Returns: whether the task was still the same, and the change is on the disk.
    private func replace(_ task: DiagnosisTask, by phase: DiagnosisTask.Phase) -> Bool {
        do {
            return try change("storing a diagnosis task") { $0.replace(task, by: phase) }
        } catch {
            failed(task, error)
            return false
        }
    }

    /// Changes a task here and in the store in one go; what was collected for the former goes when the new has it not.
    ///
    /// - Returns: whether there was anything to change.
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
                // Tasks are what they were above; pauses and the network may not be.
                state.withLock { state in
                    _ = body(&state.agenda)
                    _ = state.agenda.forgetOldest()
                }
            })
        former.bundle.map(collector.delete)
        if former.isChanged { announce() }
        return former.isChanged
    }

    /// Tells listeners what has changed, and has `run()` look again.
    private func announce() {
        let news = state.withLock { state in
            let statuses = Self.statuses(state)
            defer { state.announced = statuses }
            return statuses.compactMap { id, status in
                state.announced[id] == status
                    ? nil : state.agenda.tasks[id].map { DiagnosisReport(command: $0.command, status: status) }
            }
        }
        for report in news { listeners.send(report) }
        wakes.send(())
    }

    private static func statuses(_ state: State) -> [String: DiagnosisStatus] {
        state.agenda.tasks.mapValues { task in
            task.status(on: state.network, isCollecting: state.collecting == task.command.taskID)
        }
    }
}
