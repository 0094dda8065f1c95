import NIOCore

/// Connections of devices.
extension LoadRun {
    /// Shortest back-off of a device after a failed connection.
    private static let pauseMilliseconds: Int64 = 500

    /// Connects the next device of a connect step, if any.
    func connectNext() {
        guard let number = step?.away.popFirst() else { return }
        connect(fleet.devices[number])
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

    /// Records that a device has received its backlog.
    func caughtUp(_ device: LoadDevice, _ now: Int64) {
        fleet.readyDevices += 1
        if let step {
            step.connects += 1
            step.connectLatency.record(nanoseconds: now - device.connection.connectingSince)
        }
        connectNext()
        progressed()
    }

    /// Records the end of a device's connection. `wasReady`: the device had received its backlog.
    func ended(_ device: LoadDevice, wasReady: Bool) {
        if wasReady { fleet.readyDevices -= 1 }
        if device.connection.isLeaving {
            if step?.goal != .gone { connect(device) }
            return progressed()
        }
        if wasReady { fleet.fallenDevices += 1 }
        connectAgain(device)
    }

    /// Connects a device again after a back-off.
    private func connectAgain(_ device: LoadDevice) {
        step?.retries += 1
        // Spread over half a second, like the back-offs of real devices.
        let pause = max(device.connection.pauseMilliseconds, Self.pauseMilliseconds) + Int64(device.number % 500)
        after(.milliseconds(pause)) { [self] in if fleet.isWanted { connect(device) } }
    }

    /// Records the heartbeat interval from the gateway.
    func heartbeat(seconds: Int) { fleet.heartbeatSeconds = max(1, seconds) }

    /// Disconnects and reconnects devices at a constant rate.
    func beginReconnecting(_ perSecond: Int, _ seconds: Int) {
        step?.open += 1
        reconnectNext(0, of: perSecond * seconds, every: .nanoseconds(1_000_000_000 / Int64(perSecond)))
    }

    private func reconnectNext(_ index: Int, of count: Int, every pause: TimeAmount) {
        guard index < count else {
            step?.open -= 1
            return progressed()
        }
        let device = fleet.device(for: index)
        if device.connection.phase == .ready { device.leave() }
        after(pause) { [self] in reconnectNext(index + 1, of: count, every: pause) }
    }
}
