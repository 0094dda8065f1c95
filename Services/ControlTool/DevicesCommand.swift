import ArgumentParser
import BusMessages
import SwiftProtobuf

/// `mssctl devices`: who is connected.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "One line for each connected device of an instance, by device id.",
        discussion: ToolSettings.amqpHint)

    @Option(help: "The instance.")
    var instance: String
    @Option(help: "Only devices of this user.")
    var user: String?
    @Option(help: "Only devices above this id: the last line's, to page on.")
    var after = ""
    @Option(help: "Lines at the most, 1 to 1000.")
    var limit = 100

    func validate() throws {
        guard (1...1_000).contains(limit) else { throw ValidationError("--limit takes 1 to 1000.") }
    }

    func run() async throws {
        let request = Mss_Bus_V1_DevicesRequest.with {
            $0.instanceID = instance
            $0.userID = user ?? ""
            $0.afterDeviceID = after
            $0.limit = UInt32(limit)
        }
        try await ControlClient.with { client in
            for device in try await client.operate({ $0.devices = request }).devices.devices { print(device.line) }
        }
    }
}

extension Mss_Bus_V1_DeviceRow {
    /// One line of the list.
    fileprivate var line: String {
        let system =
            switch operatingSystem {
            case .ios: "iOS"
            case .android: "Android"
            default: "another system"
            }
        var words = [userID.isEmpty ? "no user" : "user \(userID)"]
        if owner { words.append("owner") }
        if validVerdict { words.append("session valid") }
        words.append(foreground ? "foreground" : "background")
        return "\(deviceID)\t\(words.joined(separator: ", "))\t\(system) \(appVersion)\tat \(gatewayID)"
    }
}
