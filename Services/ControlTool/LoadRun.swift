import DeviceProtocol
import NIOCore
import NIOPosix
import NIOSSL

/// One load run. Everything happens on one event loop, so that nothing here needs a lock.
final class LoadRun {
    private let plan: LoadPlan
    private let loop: any EventLoop
    private let host: String
    private var report = LoadReport()
    private var idle: [LoadCaller] = []
    private var pushOf: [ObjectIdentifier: Int] = [:]
    private var scheduled: [ContinuousClock.Instant] = []
    private var waiting: ArraySlice<Int> = []
    private var isDelivered: [Bool] = []
    private var lastOplogID: [Int64]
    private var readyDevices = 0
    private var start = ContinuousClock.now
    private var isSending = false
    private let finished: EventLoopPromise<Void>
    private let allReady: EventLoopPromise<Void>

    init(plan: LoadPlan, loop: any EventLoop, host: String) {
        self.plan = plan
        self.loop = loop
        self.host = host
        lastOplogID = Array(repeating: 0, count: plan.devices)
        finished = loop.makePromise()
        allReady = loop.makePromise()
    }

    // MARK: Parts

    func makeDevice(_ number: Int) -> LoadDevice {
        LoadDevice(
            number: number, plan: plan,
            onReady: { [self] in
                readyDevices += 1
                if readyDevices == plan.devices { allReady.succeed() }
            },
            onEntry: { [self] in delivered(to: $0, oplogID: $1, push: $2) },
            onClosed: { [self] in report.closedDevices += 1 })
    }

    func makeCaller() -> LoadCaller { LoadCaller { [self] in answered($0, code: $1) } }

    /// Completes when every device has caught up.
    var whenReady: EventLoopFuture<Void> { allReady.futureResult }

    // MARK: Running

    /// Sends for the planned time, waits until all is delivered, and gives the report.
    func run(callers: [LoadCaller]) -> EventLoopFuture<LoadReport> {
        idle = callers
        start = .now
        isSending = true
        switch plan.pace {
        case .rate(let perSecond): tick(perSecond: perSecond)
        case .window(let window): for _ in 0..<window { sendNext() }
        }
        let bound = NIOLoopBound(self, eventLoop: loop)
        loop.scheduleTask(in: .seconds(Int64(plan.seconds))) { bound.value.isSending = false }
        loop.scheduleTask(in: .seconds(Int64(plan.seconds) + 15)) { bound.value.finished.succeed() }
        return finished.futureResult.map {
            bound.value.report
        }
    }

    private func tick(perSecond: Int) {
        let elapsed = start.duration(to: .now)
        while isSending, plan.due(scheduled.count, perSecond: perSecond) <= elapsed {
            scheduled.append(start + plan.due(scheduled.count, perSecond: perSecond))
            enqueue(scheduled.count - 1)
        }
        guard isSending else { return finishIfDone() }
        let bound = NIOLoopBound(self, eventLoop: loop)
        loop.scheduleTask(in: .microseconds(500)) { bound.value.tick(perSecond: perSecond) }
    }

    private func sendNext() {
        guard isSending else { return }
        scheduled.append(.now)
        enqueue(scheduled.count - 1)
    }

    private func enqueue(_ push: Int) {
        isDelivered.append(false)
        report.sent += 1
        if let caller = idle.popLast() { send(push, caller) } else { waiting.append(push) }
    }

    private func send(_ push: Int, _ caller: LoadCaller) {
        pushOf[ObjectIdentifier(caller)] = push
        caller.call(plan.request(push, host: host))
    }

    private func answered(_ caller: LoadCaller, code: String) {
        guard let push = pushOf.removeValue(forKey: ObjectIdentifier(caller)) else { return }
        report.answers[code, default: 0] += 1
        report.answerLatency.record(scheduled[push].duration(to: .now))
        // A failed call is not delivered, and in a closed loop makes room for another.
        if code != "SUCCESS", code != "NOT_ONLINE", case .window = plan.pace { sendNext() }
        if code == "closed" { return finishIfDone() }
        if let next = waiting.popFirst() { send(next, caller) } else { idle.append(caller) }
        finishIfDone()
    }

    private func delivered(to device: Int, oplogID: Int64, push: Int) {
        guard isDelivered.indices.contains(push), plan.device(of: push) == device else {
            report.strangers += 1
            return
        }
        if isDelivered[push] { report.duplicates += 1 } else { report.delivered += 1 }
        isDelivered[push] = true
        if oplogID <= lastOplogID[device] { report.outOfOrder += 1 }
        lastOplogID[device] = oplogID
        report.deliveryLatency.record(scheduled[push].duration(to: .now))
        report.elapsed = start.duration(to: .now)
        if case .window = plan.pace { sendNext() }
        finishIfDone()
    }

    private func finishIfDone() {
        let answered = report.answers.values.reduce(0, +)
        let stored = (report.answers["SUCCESS"] ?? 0) + (report.answers["NOT_ONLINE"] ?? 0)
        if !isSending, answered == report.sent, report.delivered >= stored { finished.succeed() }
    }
}
