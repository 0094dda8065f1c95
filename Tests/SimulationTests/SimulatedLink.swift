import DeviceProtocol

/// A device's connection: frames in their order, each way with a delay, until it breaks or is cut.
final class SimulatedLink {
    private let simulation: Simulation
    private var upUntil = Duration.zero
    private var downUntil = Duration.zero
    private(set) var isOpen = true
    /// Frames of this way vanish, and nobody hears of it.
    var losesUp = false
    var losesDown = false
    /// How often a push comes twice, as from a gateway that has lost its place.
    var repeats = 0.0
    /// How often a push is left out, and the connection falls a moment later.
    var holes = 0.0
    /// A frame has come to the gateway.
    var whenAtGateway: (Mss_Device_V1_Packet) -> Void = { _ in }
    /// The device's end of the connection was heard of.
    var whenClosedAtGateway: () -> Void = {}
    /// A frame has come to the device.
    var whenAtDevice: (Mss_Device_V1_Packet) -> Void = { _ in }
    /// The gateway's end of the connection was heard of.
    var whenClosedAtDevice: () -> Void = {}
    /// The gateway has taken a frame.
    var whenTaken: (Mss_Device_V1_Packet) -> Void = { _ in }
    /// A frame leaves the gateway.
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

    /// Something between them resets the connection: both hear of it at once, and what was on its way is gone.
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
