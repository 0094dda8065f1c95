import NIOCore

/// Devices that come and go.
extension LoadRun {
    /// How long a device that did not get in stays away at least.
    private static let pauseMilliseconds: Int64 = 500

    /// Connects the next device of a connect step, if there is one.
    func connectNext() {
        guard let number = step?.away.popFirst() else { return }
        connect(devices[number])
    }

    private func connect(_ device: LoadDevice) {
        device.connects(at: Self.now)
        let bound = NIOLoopBound((self, device), eventLoop: loop)
        dialer.connect(device).whenFailure { _ in
            let (run, device) = bound.value
            device.failed()
            run.connectAgain(device)
        }
    }

    /// A device is there and has its backlog.
    func caughtUp(_ device: LoadDevice, _ now: Int64) {
        readyDevices += 1
        if let step {
            step.connects += 1
            step.connectLatency.record(nanoseconds: now - device.connectingSince)
        }
        connectNext()
        progressed()
    }

    /// A device's connection is over; `wasReady`: it had come to its backlog's end.
    func ended(_ device: LoadDevice, wasReady: Bool) {
        if wasReady { readyDevices -= 1 }
        if device.isLeaving {
            if step?.goal != .gone { connect(device) }
            return progressed()
        }
        if wasReady { fallenDevices += 1 }
        connectAgain(device)
    }

    /// It was refused, or fell: it comes back as a device would, after a pause.
    private func connectAgain(_ device: LoadDevice) {
        step?.retries += 1
        // Spread, as devices' pauses are.
        let pause = max(device.pauseMilliseconds, Self.pauseMilliseconds) + Int64(device.number % 500)
        after(.milliseconds(pause)) { [self] in if wantsDevices { connect(device) } }
    }

    /// The gateway says how often devices ping.
    func heartbeat(seconds: Int) { heartbeatSeconds = max(1, seconds) }

    /// Devices leave and come back, one after the other.
    func beginReconnecting(_ perSecond: Int, _ seconds: Int) {
        step?.open += 1
        reconnectNext(0, of: perSecond * seconds, every: .nanoseconds(1_000_000_000 / Int64(perSecond)))
    }

    private func reconnectNext(_ index: Int, of count: Int, every pause: TimeAmount) {
        guard index < count else {
            step?.open -= 1
            return progressed()
        }
        let device = devices[(index &* 7_919) % devices.count]
        if device.phase == .ready { device.leave() }
        after(pause) { [self] in reconnectNext(index + 1, of: count, every: pause) }
    }
}
