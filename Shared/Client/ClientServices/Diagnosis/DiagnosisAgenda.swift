/// The diagnosis tasks of a device and the choice of the next step. A pure value.
///
/// One step runs at a time, for the oldest task that can continue. A task that has no allowed network, or that waits
/// after a failure, does not delay the other tasks.
struct DiagnosisAgenda: Sendable {
    private struct Pause {
        var failures = 0
        var until: ContinuousClock.Instant
    }

    private(set) var tasks: [String: DiagnosisTask]
    private var pauses: [String: Pause] = [:]

    /// - Parameter tasks: the stored tasks.
    init(tasks: [DiagnosisTask] = []) {
        self.tasks = Dictionary(tasks.map { ($0.command.taskID, $0) }, uniquingKeysWith: { $1 })
    }

    /// Whether one more task can start.
    var canAddTask: Bool { tasks.values.count { !$0.hasEnded } < ServiceLimits.tasks }

    /// Applies a command.
    ///
    /// - Returns: the task that the command starts or ends; nil when the command is not newer than the known one.
    mutating func apply(_ command: DiagnosisCommand) -> DiagnosisTask? {
        let known = tasks[command.taskID]
        switch command.action {
        case .collect:
            if let known, command.run <= known.command.run { return nil }
        case .delete:
            // The deletion is also recorded for an unknown task, because the task's command can arrive later.
            if let known, command.run < known.command.run || known.phase == .deleted { return nil }
        }
        let order = (tasks.values.map(\.order).max() ?? 0) + 1
        let task = DiagnosisTask(
            command: command, order: order, phase: command.action == .collect ? .waiting : .deleted)
        set(task)
        return task
    }

    /// Moves a task to its next phase, unless a newer run has started or the task was deleted.
    ///
    /// - Parameter former: the task as it was when the step started.
    /// - Returns: the changed task; nil when the task is not the former one any more.
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

    /// Records a failed step: the task waits 1, 2, 4 … 300 s before its next step.
    mutating func failed(_ task: DiagnosisTask, at now: ContinuousClock.Instant) {
        let failures = (pauses[task.command.taskID]?.failures ?? 0) + 1
        let seconds = failures > 9 ? 300 : min(1 << (failures - 1), 300)
        pauses[task.command.taskID] = Pause(failures: failures, until: now + .seconds(seconds))
    }

    /// Ends all waits: a step that failed on the former network can succeed on the new one.
    mutating func networkChanged() { pauses = [:] }

    /// Removes the oldest ended tasks above the limit and returns their ids.
    mutating func forgetOldest() -> [String] {
        let ended = tasks.values.filter(\.hasEnded).sorted { $0.order < $1.order }
        let forgotten = ended.prefix(max(tasks.count - ServiceLimits.tasks, 0)).map(\.command.taskID)
        for id in forgotten { tasks[id] = nil }
        return forgotten
    }

    /// The next step of the oldest task that can continue, or the time to wait.
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
        case .refused(let reason, isTold: false): network == .none ? nil : .reportRefusal(task, reason)
        case .done, .deleted, .refused: nil
        }
    }

    /// Whether a running step can continue: its task is unchanged and the network is still allowed.
    func permits(_ step: DiagnosisStep, on network: NetworkKind) -> Bool {
        switch step {
        case .collect(let task), .send(let task, _, _), .reportRefusal(let task, _):
            tasks[task.command.taskID] == task && self.step(of: task, on: network) != nil
        case .wait: true
        }
    }
}
