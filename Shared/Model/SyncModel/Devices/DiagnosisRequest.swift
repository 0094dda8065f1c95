/// An operator's request for a device's log (SVC6).
package struct DiagnosisRequest: Hashable, Sendable {
    /// The begin of the time range, by the device's clock.
    package var from: WallTime
    /// The end of the time range, exclusive.
    package var to: WallTime
    /// The lowest level to include, with the names of swift-log.
    package var level: String
    /// `wifi`: over Wi-Fi only; `any`: over any network.
    package var network: String
    /// Maximum size of the log in bytes.
    package var limitBytes: Int

    /// The valid levels.
    package static let levels = ["trace", "debug", "info", "notice", "warning", "error", "critical"]
    /// The valid networks.
    package static let networks = ["wifi", "any"]

    package init(from: WallTime, to: WallTime, level: String, network: String, limitBytes: Int) {
        self.from = from
        self.to = to
        self.level = level
        self.network = network
        self.limitBytes = limitBytes
    }

    /// The command for a device, as ASCII JSON (ClientServices, Diagnosis logs).
    package func command(taskID: String, run: Int) -> String {
        #"{"taskId":"\#(taskID)","run":\#(run),"from":\#(from.milliseconds),"to":\#(to.milliseconds),"#
            + #""level":"\#(level)","network":"\#(network)","limitBytes":\#(limitBytes)}"#
    }

    /// The command that ends a task on a device.
    package static func deletion(taskID: String, run: Int) -> String {
        #"{"taskId":"\#(taskID)","run":\#(run),"action":"delete"}"#
    }
}

/// The state of a diagnosis task, which requests a device's log. The raw values are stored in the database.
package enum DiagnosisState: Int16, Sendable, CaseIterable {
    /// The request was sent; no part has arrived.
    case asked = 1
    /// Some parts have arrived.
    case coming = 2
    /// All parts of the collected log have arrived.
    case whole = 3
    /// The device sends no log, with a reason.
    case refused = 4

    /// The state in commands and in the API.
    package var word: String {
        switch self {
        case .asked: "asked"
        case .coming: "coming"
        case .whole: "whole"
        case .refused: "refused"
        }
    }
}
