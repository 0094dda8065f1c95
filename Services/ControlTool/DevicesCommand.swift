import ArgumentParser
import BusMessages
import SwiftProtobuf

/// `mssctl devices`: who is connected, and to whom device ids belong.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "Lists connected devices, and releases device ids.",
        discussion: ToolSettings.amqpHint, subcommands: [List.self, Release.self], defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "One line for each connected device of an instance, by device id.")

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

    struct Release: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Forgets the secret of a device id.",
            discussion: "The next device that connects with the id gets it: make sure that it is the right one.")

        @Option(help: "The instance.")
        var instance: String
        @Option(help: "The device id.")
        var device: String

        func run() async throws {
            let (instance, device) = (instance, device)
            try await ControlClient.with { client in
                try await client.change("release \(device)") {
                    $0.releaseDevice.instanceID = instance
                    $0.releaseDevice.deviceID = device
                }
            }
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
