import NIOCore

/// Sending, responses and deliveries of pushes.
extension LoadRun {
    /// Shortest interval of the timer, in nanoseconds. A shorter one only costs processor time.
    private static let pause: Int64 = 250_000

    /// Starts a stream. The stream ends after its last call.
    func begin(_ index: Int, _ stream: PushStream) {
        streams[index].isSending = true
        step?.open += 1
        switch stream.pace {
        case .rate(let perSecond, let seconds): tick(index, perSecond, calls: perSecond * seconds, from: Self.now, 0)
        case .window(let size, let seconds):
            for _ in 0..<max(1, size / stream.call.items) { launch(index, due: Self.now) }
            after(.seconds(Int64(seconds))) { [self] in stopSending(index) }
        case .each: for _ in 0..<plan.scenario.connections { launchNext(index) }
        case .times: if plan.part.number == 1 { launchNext(index) } else { expectGlobals(index) }
        }
    }

    /// Open loop: launches every call that is due, regardless of earlier calls.
    private func tick(_ index: Int, _ perSecond: Int, calls: Int, from start: Int64, _ launched: Int) {
        guard streams[index].isSending else { return }
        let items = streams[index].stream.call.items
        let now = Self.now
        var launched = launched
        func due(_ push: Int) -> Int64 { start + Int64(push) * 1_000_000_000 / Int64(perSecond) }
        while launched < calls, due(launched) <= now {
            launch(index, due: due(launched))
            launched += items
        }
        guard launched < calls else { return stopSending(index) }
        let next = launched
        after(.nanoseconds(max(due(next) - now, Self.pause))) { [self] in
            tick(index, perSecond, calls: calls, from: start, next)
        }
    }

    /// Stops every stream before its planned end. The step still waits for its goal.
    func stopSending() {
        for index in streams.indices { stopSending(index) }
    }

    private func stopSending(_ index: Int) {
        guard streams[index].isSending else { return }
        streams[index].isSending = false
        step?.open -= 1
        progressed()
    }

    /// Launches the next call of a stream with a fixed number of pushes.
    private func launchNext(_ index: Int) {
        guard streams[index].isSending, let total = streams[index].total(users: plan.scenario.users) else { return }
        guard streams[index].begun < total else { return stopSending(index) }
        launch(index, due: Self.now)
    }

    /// Only the first process of a run sends global pushes. The other processes expect them too.
    private func expectGlobals(_ index: Int) {
        for _ in 0..<(streams[index].total(users: plan.scenario.users) ?? 0) {
            _ = pushes.answered(nextGlobal(index), isStored: true)
        }
        stopSending(index)
    }

    /// Pause between two global pushes, in which the acknowledgements of the former one are processed.
    private static let betweenGlobals = TimeAmount.seconds(1)

    private func nextGlobal(_ index: Int) -> Int {
        defer { streams[index].begun += 1 }
        return pushes.openGlobal(streams[index].firstGlobal + streams[index].begun, stream: index)
    }

    // MARK: Calls

    private func launch(_ index: Int, due: Int64) {
        step?.calls += 1
        if let caller = calls.caller(for: index, due: due) { send(index, due, caller) }
    }

    private func send(_ index: Int, _ due: Int64, _ caller: LoadCaller) {
        let stream = streams[index].stream
        let begun = streams[index].begun
        var first = 0
        if stream.call == .global {
            first = nextGlobal(index)
        } else {
            for item in 0..<stream.call.items {
                let number = pushes.open(user: plan.user(of: begun + item, in: stream), stream: index)
                if item == 0 { first = number }
            }
            streams[index].begun += stream.call.items
        }
        traffic.calls += 1
        let call = LoadCaller.Call(stream: index, first: first, due: due)
        let isSent = caller.send(call, templates[index]) { plan.userNumber(plan.user(of: begun + $0, in: stream)) }
        if !isSent { answered(call, LoadCaller.closed) }
    }

    /// Records that a connection to the API has no call in flight.
    func idle(_ caller: LoadCaller) {
        if let next = calls.call(for: caller) { send(next.stream, next.due, caller) }
    }

    /// Records the end of a connection to the API and opens another.
    func callerEnded(_ caller: LoadCaller, _ call: LoadCaller.Call?) {
        calls.remove(caller)
        if let call { answered(call, LoadCaller.closed) }
        after(.milliseconds(100)) { [self] in redial() }
    }

    private func redial() {
        let bound = NIOLoopBound(self, eventLoop: loop)
        dialer.call(LoadCaller(self), Int.random(in: 0..<1_000)).whenFailure { _ in
            bound.value.after(.seconds(1)) { bound.value.redial() }
        }
    }

    /// Records a response, or the end of the connection in its place.
    func answered(_ call: LoadCaller.Call, _ codes: [String]) {
        let index = call.stream
        let items = streams[index].stream.call.items
        if streams[index].latencyWindow.contains(call.due) {
            streams[index].answerLatency.record(nanoseconds: Self.now - call.due)
        }
        step?.calls -= 1
        var settled = 0
        // A batch response has the code of the call first, then one code per item. A refused call has one code only.
        let isItemized = items > 1 || codes.count > 1
        for item in 0..<items {
            let code = isItemized && codes.count == items + 1 ? codes[item + 1] : codes.first ?? "unreadable"
            streams[index].answers[code, default: 0] += 1
            let isStored = code == "SUCCESS" || code == "NOT_ONLINE"
            if pushes.answered(call.first + item, isStored: isStored) != .open { settled += 1 }
        }
        if case .each = streams[index].stream.pace { launchNext(index) }
        release(settled, index)
        progressed()
    }

    // MARK: Deliveries

    /// Records the delivery of a push of this run.
    func delivered(_ stamp: PushStamp, to device: Int, _ now: Int64) {
        guard let (index, outcome) = pushes.delivered(stamp.number, to: device) else { return }
        if streams[index].latencyWindow.contains(stamp.due) {
            streams[index].deliveryLatency.record(nanoseconds: now - stamp.due)
        }
        guard outcome != .open else { return }
        if streams[index].stream.call == .global {
            streams[index].lastDeviceLatency.record(nanoseconds: now - stamp.due)
        }
        release(1, index)
    }

    /// Records completed pushes. In a closed loop, launches further calls.
    private func release(_ count: Int, _ index: Int) {
        guard count > 0, streams[index].isSending else { return }
        switch streams[index].stream.pace {
        case .window:
            streams[index].freed += count
            let items = streams[index].stream.call.items
            while streams[index].freed >= items {
                streams[index].freed -= items
                launch(index, due: Self.now)
            }
        case .times: after(Self.betweenGlobals) { [self] in launchNext(index) }
        case .rate, .each: break
        }
    }

    // MARK: Faults

    /// Records data that no push of this run carries, or an unreadable frame.
    func foundStranger() { pushes.foundStranger() }

    /// Records an oplog id that is not above the last one.
    func foundDisorder() { pushes.foundDisorder() }

    /// Records a batch that begins above the device's position.
    func foundGap() { pushes.foundGap() }
}
