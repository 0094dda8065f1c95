import NIOCore
import NIOPosix
import NIOSSL

/// The load run of one process. One event loop owns all state, so no lock is needed.
final class LoadRun {
    let plan: LoadPlan
    let runBytes: [UInt8]
    /// A template for each stream of the scenario, in order.
    let templates: [CallTemplate]
    var traffic = LoadTraffic()
    let operations = OperationProgress()
    var pushes: PushStateTable
    var streams: [StreamProgress]
    var fleet = LoadFleet([])
    let dialer: LoadDialer
    var calls = LoadCallQueue()
    /// The current step, or between two steps the previous one.
    private(set) var lastStep: LoadStepProgress?
    private var inactivity = InactivityTimer()

    /// The current step.
    var step: LoadStepProgress? { lastStep.flatMap { $0.end == 0 ? $0 : nil } }

    var loop: any EventLoop { dialer.loop }

    /// Nanoseconds of the monotonic clock.
    static var now: Int64 { Int64(NIODeadline.now().uptimeNanoseconds) }

    init(plan: LoadPlan, dialer: LoadDialer) {
        self.plan = plan
        self.dialer = dialer
        runBytes = Array(plan.run.utf8)
        let scenario = plan.scenario
        let streams = scenario.steps.flatMap(\.streams)
        templates = streams.map { CallTemplate($0.call, plan, host: dialer.host) }
        pushes = PushStateTable(
            users: scenario.users, devicesPerUser: scenario.devicesPerUser, globals: scenario.globalPushes)
        self.streams = streams.map { StreamProgress(stream: $0) }
        var globals = 0
        for index in streams.indices {
            self.streams[index].firstGlobal = globals
            if case .times(let count) = streams[index].pace { globals += count }
        }
        fleet = LoadFleet((0..<scenario.devices).map { LoadDevice($0, self) })
    }

    /// Opens the connections to the API and starts the timer. Completes when all connections are open.
    func open() -> EventLoopFuture<Void> {
        let bound = NIOLoopBound(self, eventLoop: loop)
        loop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in bound.value.second() }
        return EventLoopFuture.andAllSucceed(
            (0..<plan.scenario.connections).map { dialer.call(LoadCaller(self), $0) }, on: loop)
    }

    // MARK: Steps

    /// Executes one step. Afterwards `lastStep` contains the result.
    func perform(_ step: LoadStep, firstStream: Int) -> EventLoopFuture<Void> {
        let progress = LoadStepProgress(start: Self.now, promise: loop.makePromise())
        lastStep = progress
        inactivity.restart()
        operations.begin()
        // Prevents the end of the step before all parts have started.
        progress.open += 1
        var stream = firstStream
        for part in step.parts {
            switch part {
            case .connect(let concurrency):
                fleet.isWanted = true
                progress.away = fleet.devices.filter { $0.connection.phase == .away }.map(\.number)[...]
                for _ in 0..<concurrency { connectNext() }
            case .disconnect:
                fleet.isWanted = false
                for device in fleet.devices where device.connection.phase != .away { device.leave() }
            case .idle(let seconds): end(in: seconds) {}
            case .reconnect(let perSecond, let seconds): beginReconnecting(perSecond, seconds)
            case .operate(let operations): begin(operations)
            case .push(let push):
                begin(stream, push)
                stream += 1
            }
        }
        progress.goal = fleet.isWanted ? .delivered : step.parts == [.disconnect] ? .gone : .answered
        progress.open -= 1
        checkEnd()
        return progress.promise.futureResult
    }

    /// Keeps the step open for some seconds.
    func end(in seconds: Int, _ body: @escaping () -> Void) {
        step?.open += 1
        after(.seconds(Int64(seconds))) { [self] in
            body()
            step?.open -= 1
            checkEnd()
        }
    }

    /// Executes a body later, on the event loop of the run.
    func after(_ pause: TimeAmount, _ body: @escaping () -> Void) {
        let bound = NIOLoopBound(body, eventLoop: loop)
        loop.scheduleTask(in: pause) { bound.value() }
    }

    /// Ends the step when everything is sent and answered and the goal is reached.
    private func checkEnd() {
        guard let step, step.open == 0, step.calls == 0, calls.isEmpty, step.away.isEmpty else { return }
        switch step.goal {
        case .answered: break
        case .delivered:
            guard fleet.isSettled, pushes.missing == 0, operations.open == 0 else { return }
        case .gone: guard fleet.isAway else { return }
        }
        finish(isComplete: true)
    }

    private func finish(isComplete: Bool) {
        guard let step else { return }
        step.end = Self.now
        step.isComplete = isComplete
        step.promise.succeed()
    }

    /// Records an event and checks for the end of the step.
    func progressed() {
        inactivity.recordEvent()
        checkEnd()
    }

    private func second() {
        for device in fleet.advanceSecond() { device.ping() }
        guard let step, step.open == 0 else { return inactivity.recordActivity() }
        inactivity.recordWaitingSecond()
        if inactivity.isExpired { finish(isComplete: false) }
    }
}
