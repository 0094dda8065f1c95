/// The diagnosis tasks of a device, and whose turn it is; pure.
///
/// One thing is done at a time, for the task that came first among those that can go on: one that has no network that
/// it may use, or waits after a failure, does not hold up the others.
struct DiagnosisAgenda: Sendable {
    private struct Pause {
        var failures = 0
        var until: ContinuousClock.Instant
    }

    private(set) var tasks: [String: DiagnosisTask]
    private var pauses: [String: Pause] = [:]

    /// - Parameter tasks: as they were kept.
    init(tasks: [DiagnosisTask] = []) {
        self.tasks = Dictionary(tasks.map { ($0.command.taskID, $0) }, uniquingKeysWith: { $1 })
    }

    /// Whether one more task may begin.
    var hasRoom: Bool { tasks.values.count { !$0.hasEnded } < ServiceLimits.tasks }

    /// A command has come.
    ///
    /// - Returns: the task that it begins or ends; nil: the command is known.
    mutating func take(_ command: DiagnosisCommand) -> DiagnosisTask? {
        let known = tasks[command.taskID]
        switch command.action {
        case .collect:
            if let known, command.run <= known.command.run { return nil }
        case .delete:
            // Also for a task that was never here: its command may come late.
            if let known, command.run < known.command.run || known.phase == .deleted { return nil }
        }
        let order = (tasks.values.map(\.order).max() ?? 0) + 1
        let task = DiagnosisTask(
            command: command, order: order, phase: command.action == .collect ? .waiting : .deleted)
        set(task)
        return task
    }

    /// Keeps a task as it is now, unless another run of it has begun, or it was deleted meanwhile.
    ///
    /// - Parameter former: what the step was for.
    /// - Returns: whether it was kept.
    mutating func replace(_ former: DiagnosisTask, by phase: DiagnosisTask.Phase) -> DiagnosisTask? {
        guard var task = tasks[former.command.taskID], task == former else { return nil }
        task.phase = phase
        set(task)
        return task
    }

    private mutating func set(_ task: DiagnosisTask) {
        tasks[task.command.taskID] = task
        pauses[task.command.taskID] = nil
    }

    /// A step for this task did not succeed: it waits 1, 2, 4 … 300 s.
    mutating func failed(_ task: DiagnosisTask, at now: ContinuousClock.Instant) {
        let failures = (pauses[task.command.taskID]?.failures ?? 0) + 1
        let seconds = failures > 9 ? 300 : min(1 << (failures - 1), 300)
        pauses[task.command.taskID] = Pause(failures: failures, until: now + .seconds(seconds))
    }

    /// The device is on another network: what failed on the last may go on at once.
    mutating func networkChanged() { pauses = [:] }

    /// The ids of tasks to forget: the oldest that have ended, beyond the limit.
    mutating func forgetOldest() -> [String] {
        let ended = tasks.values.filter(\.hasEnded).sorted { $0.order < $1.order }
        let forgotten = ended.prefix(max(tasks.count - ServiceLimits.tasks, 0)).map(\.command.taskID)
        for id in forgotten { tasks[id] = nil }
        return forgotten
    }

    /// What to do now.
    func next(on network: NetworkKind, at now: ContinuousClock.Instant) -> DiagnosisStep {
        var soonest: ContinuousClock.Instant?
        for task in tasks.values.sorted(by: { $0.order < $1.order }) {
            guard let step = step(of: task, on: network) else { continue }
            guard let pause = pauses[task.command.taskID], pause.until > now else { return step }
            soonest = min(soonest ?? pause.until, pause.until)
        }
        return .wait(until: soonest)
    }

    private func step(of task: DiagnosisTask, on network: NetworkKind) -> DiagnosisStep? {
        switch task.phase {
        case .waiting: .collect(task)
        case .collected(let bundle, let taken):
            task.command.network.allows(network) ? .send(task, bundle, part: taken + 1) : nil
        case .refused(let reason, isTold: false): network == .none ? nil : .tell(task, reason)
        case .done, .deleted, .refused: nil
        }
    }

    /// Whether a step that has begun may go on.
    func permits(_ step: DiagnosisStep, on network: NetworkKind) -> Bool {
        switch step {
        case .collect(let task), .send(let task, _, _), .tell(let task, _):
            tasks[task.command.taskID] == task && self.step(of: task, on: network) != nil
        case .wait: true
        }
    }
}
