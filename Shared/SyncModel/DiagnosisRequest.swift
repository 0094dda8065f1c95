/// What an operator wants of a device's log (spec, two-way §3).
package struct DiagnosisRequest: Hashable, Sendable {
    /// From when on, by the device's clock.
    package var from: WallTime
    /// Until when, this moment not included.
    package var to: WallTime
    /// The lowest level that is wanted, as swift-log names them.
    package var level: String
    /// `wifi`: over Wi-Fi only; `any`: over any network.
    package var network: String
    /// Bytes that the log may have.
    package var limitBytes: Int

    /// The levels that there are.
    package static let levels = ["trace", "debug", "info", "notice", "warning", "error", "critical"]
    /// The networks that can be asked for.
    package static let networks = ["wifi", "any"]

    package init(from: WallTime, to: WallTime, level: String, network: String, limitBytes: Int) {
        self.from = from
        self.to = to
        self.level = level
        self.network = network
        self.limitBytes = limitBytes
    }

    /// The command that tells a device, JSON of ASCII (ClientServices, Diagnosis logs).
    package func command(taskID: String, run: Int) -> String {
        #"{"taskId":"\#(taskID)","run":\#(run),"from":\#(from.milliseconds),"to":\#(to.milliseconds),"#
            + #""level":"\#(level)","network":"\#(network)","limitBytes":\#(limitBytes)}"#
    }

    /// The command that ends a task on a device.
    package static func deletion(taskID: String, run: Int) -> String {
        #"{"taskId":"\#(taskID)","run":\#(run),"action":"delete"}"#
    }
}
