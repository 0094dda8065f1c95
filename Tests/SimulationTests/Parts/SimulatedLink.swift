import DeviceProtocol

/// A device's connection. Frames arrive in order and with a delay, until the connection breaks or is cut.
final class SimulatedLink {
    private let simulation: Simulation
    private var upUntil = Duration.zero
    private var downUntil = Duration.zero
    private(set) var isOpen = true
    /// Whether frames to the gateway (`losesUp`) or to the device (`losesDown`) are lost without an error.
    var losesUp = false
    var losesDown = false
    /// The probability that a push frame arrives twice, as from a gateway that has lost its cursor.
    var repeats = 0.0
    /// The probability that a push frame is lost; the connection breaks a moment later.
    var holes = 0.0
    /// Called when a frame arrives at the gateway.
    var whenAtGateway: (Mss_Device_V1_Packet) -> Void = { _ in }
    /// Called when the gateway notices that the device closed the connection.
    var whenClosedAtGateway: () -> Void = {}
    /// Called when a frame arrives at the device.
    var whenAtDevice: (Mss_Device_V1_Packet) -> Void = { _ in }
    /// Called when the device notices that the gateway closed the connection.
    var whenClosedAtDevice: () -> Void = {}
    /// Called when the gateway processes a frame.
    var whenGatewayReceives: (Mss_Device_V1_Packet) -> Void = { _ in }
    /// Called when the gateway sends a frame.
    var whenSent: (Mss_Device_V1_Packet) -> Void = { _ in }

    init(_ simulation: Simulation) { self.simulation = simulation }

    func toGateway(_ packet: Mss_Device_V1_Packet) {
        after(&upUntil) { [weak self] in if self?.losesUp == false { self?.whenAtGateway(packet) } }
    }

    func toDevice(_ packet: Mss_Device_V1_Packet) {
        whenSent(packet)
        var times = 1
        if case .push? = packet.body {
            if simulation.happens(holes) {
                simulation.after(simulation.pick(.zero, .seconds(2))) { [weak self] in self?.reset() }
                return
            }
            if simulation.happens(repeats) { times = 2 }
        }
        for _ in 0..<times {
            after(&downUntil) { [weak self] in if self?.losesDown == false { self?.whenAtDevice(packet) } }
        }
    }

    func closedByDevice() {
        isOpen = false
        after(&upUntil) { [weak self] in if self?.losesUp == false { self?.whenClosedAtGateway() } }
    }

    func closedByGateway() {
        after(&downUntil) { [weak self] in if self?.losesDown == false { self?.whenClosedAtDevice() } }
    }

    /// Resets the connection. Both ends notice it at once, and frames in flight are lost.
    func reset() {
        (losesUp, losesDown) = (true, true)
        let (atGateway, atDevice) = (whenClosedAtGateway, whenClosedAtDevice)
        simulation.after(.milliseconds(1)) {
            atGateway()
            atDevice()
        }
    }

    private func after(_ until: inout Duration, _ body: @escaping () -> Void) {
        until = max(until, simulation.elapsed + simulation.pick(.milliseconds(1), .milliseconds(40)))
        simulation.after(until - simulation.elapsed, body)
    }
}
