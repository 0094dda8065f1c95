import NIOCore
import NIOPosix
import NIOSSL

/// One process's load run. Everything happens on one event loop, so that nothing here needs a lock.
final class LoadRun {
    /// How long nothing may happen before a step that waits is given up.
    private static let patience = 15

    let plan: LoadPlan
    let runBytes: [UInt8]
    /// Of every stream of the scenario, in order.
    let templates: [CallTemplate]
    var traffic = LoadTraffic()
    let operations = OperationProgress()
    /// Operations that were made, of all steps.
    var operationsBegun = 0
    /// Devices that have something to acknowledge, or to hear that it was recorded.
    var dirtyDevices = 0
    var book: PushBook
    var streams: [StreamProgress]
    private(set) var devices: [LoadDevice] = []
    let loop: any EventLoop
    let dialer: LoadDialer
    /// Connections to the API without a call.
    var idleCallers: [LoadCaller] = []
    /// Calls that are due and have no connection.
    var waiting = CircularBuffer<(stream: Int, due: Int64)>()
    var readyDevices = 0
    /// How often a device pings, as the gateway wants it.
    var heartbeatSeconds = 60
    /// The step under way.
    private(set) var step: LoadStepProgress?
    /// The step under way or, between two, the one before.
    private(set) var lastStep: LoadStepProgress?
    /// Connections that fell by themselves.
    var fallenDevices = 0
    /// The scenario has the devices connected now.
    private(set) var wantsDevices = false
    private var seconds = 0
    private var events = 0
    private var quietSeconds = 0

    /// Nanoseconds of the machine's monotonic clock.
    static var now: Int64 { Int64(NIODeadline.now().uptimeNanoseconds) }

    init(plan: LoadPlan, dialer: LoadDialer, loop: any EventLoop) {
        self.plan = plan
        self.dialer = dialer
        self.loop = loop
        runBytes = Array(plan.run.utf8)
        let scenario = plan.scenario
        let streams = scenario.steps.flatMap(\.streams)
        templates = streams.map { CallTemplate($0.call, plan, host: dialer.host) }
        book = PushBook(
            users: scenario.users, devicesPerUser: scenario.devicesPerUser, globals: scenario.globalPushes)
        self.streams = streams.map { StreamProgress(stream: $0) }
        var globals = 0
        for index in streams.indices {
            self.streams[index].firstGlobal = globals
            if case .times(let count) = streams[index].pace { globals += count }
        }
        devices = (0..<scenario.devices).map { LoadDevice($0, self) }
    }

    /// Opens the connections to the APIs and starts the clock; completes when all are there.
    func open() -> EventLoopFuture<Void> {
        let bound = NIOLoopBound(self, eventLoop: loop)
        loop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in bound.value.second() }
        return EventLoopFuture.andAllSucceed(
            (0..<plan.scenario.connections).map { dialer.call(LoadCaller(self), $0) }, on: loop)
    }

    // MARK: Steps

    /// Does one step; `lastStep` says afterwards what came of it.
    func perform(_ step: LoadStep, firstStream: Int) -> EventLoopFuture<Void> {
        let progress = LoadStepProgress(start: Self.now, promise: loop.makePromise())
        self.step = progress
        lastStep = progress
        quietSeconds = 0
        operations.begin()
        // What ends at once does not end the step before the rest has begun.
        progress.open += 1
        var stream = firstStream
        for part in step.parts {
            switch part {
            case .connect(let concurrency):
                wantsDevices = true
                progress.away = devices.filter { $0.phase == .away }.map(\.number)[...]
                for _ in 0..<concurrency { connectNext() }
            case .disconnect:
                wantsDevices = false
                for device in devices where device.phase != .away { device.leave() }
            case .idle(let seconds): end(in: seconds) {}
            case .reconnect(let perSecond, let seconds): beginReconnecting(perSecond, seconds)
            case .operate(let operations): begin(operations)
            case .push(let push):
                begin(stream, push)
                stream += 1
            }
        }
        progress.goal = wantsDevices ? .delivered : step.parts == [.disconnect] ? .gone : .answered
        progress.open -= 1
        checkEnd()
        return progress.promise.futureResult
    }

    /// Something that keeps the step from ending is over after some seconds.
    func end(in seconds: Int, _ body: @escaping () -> Void) {
        step?.open += 1
        after(.seconds(Int64(seconds))) { [self] in
            body()
            step?.open -= 1
            checkEnd()
        }
    }

    /// Does something later, on the run's loop.
    func after(_ pause: TimeAmount, _ body: @escaping () -> Void) {
        let bound = NIOLoopBound(body, eventLoop: loop)
        loop.scheduleTask(in: pause) { bound.value() }
    }

    /// The step ends when nothing is left to send, everything is answered, and its goal is reached.
    private func checkEnd() {
        guard let step, step.open == 0, step.calls == 0, waiting.isEmpty, step.away.isEmpty else { return }
        switch step.goal {
        case .answered: break
        case .delivered:
            guard readyDevices == devices.count, book.missing == 0, dirtyDevices == 0, operations.open == 0
            else { return }
        case .gone: guard !devices.contains(where: { $0.phase != .away }) else { return }
        }
        finish(isComplete: true)
    }

    private func finish(isComplete: Bool) {
        guard let step else { return }
        self.step = nil
        step.end = Self.now
        step.isComplete = isComplete
        step.promise.succeed()
    }

    /// Something came to its end, or came on.
    func progressed() {
        events += 1
        checkEnd()
    }

    private func second() {
        seconds += 1
        for device in devices where device.number % heartbeatSeconds == seconds % heartbeatSeconds { device.ping() }
        guard let step, step.open == 0 else {
            quietSeconds = 0
            return
        }
        quietSeconds = step.seenEvents == events ? quietSeconds + 1 : 0
        step.seenEvents = events
        if quietSeconds >= Self.patience { finish(isComplete: false) }
    }
}
