import ArgumentParser
import BusMessages
import SwiftProtobuf
import SyncModel
import ToolSupport

/// `mssctl devices`: connected devices, and the secrets of device ids.
struct DevicesCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "devices", abstract: "Lists, shows and disconnects devices, and releases device ids.",
        discussion: ToolSettings.amqpHint,
        subcommands: [List.self, Show.self, Disconnect.self, Release.self], defaultSubcommand: List.self)

    struct List: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "One line for each connected device of an instance, by device id.")

        @Option(help: "The instance.")
        var instance: String
        @Option(help: "Only devices of this user.")
        var user: String?
        @Option(help: "Only devices above this id; name the id of the last line for the next page.")
        var after = ""
        @Option(help: "Most lines, 1 to 1000.")
        var limit = 100

        func validate() throws {
            guard (1...1_000).contains(limit) else { throw ValidationError("--limit must be 1 to 1000.") }
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

    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "One device, and the sync points of its channels.",
            discussion: "For a disconnected device: the channels without a user that the device has read.")
        @OptionGroup var name: Name

        func run() async throws {
            let name = name
            try await ControlClient.with { client in
                let reply = try await client.operate {
                    $0.device.instanceID = name.instance
                    $0.device.deviceID = name.device
                }.device
                print(reply.hasDevice ? reply.device.line : "\(TerminalText.of(name.device))\tnot connected")
                for channel in reply.channels { print(channel.line) }
            }
        }
    }

    struct Disconnect: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Ends the connection of a device, which reconnects after some seconds.")
        @OptionGroup var name: Name

        func run() async throws {
            let name = name
            try await ControlClient.with { client in
                let reply = try await client.operate {
                    $0.disconnect.instanceID = name.instance
                    $0.disconnect.deviceID = name.device
                }.disconnect
                guard reply.connected else { throw ValidationError("\(TerminalText.of(name.device)) is not connected") }
                print("disconnect \(TerminalText.of(name.device)): the gateway was notified")
            }
        }
    }

    /// The name of a device.
    struct Name: ParsableArguments {
        @Option(help: "The instance.")
        var instance: String
        @Option(help: "The device id.")
        var device: String
    }

    struct Release: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Removes the secret of a device id.",
            discussion: "The next device that connects with the id owns it: make sure that it is the correct device.")

        @OptionGroup var name: Name

        func run() async throws {
            let (instance, device) = (name.instance, name.device)
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
        let columns = [
            TerminalText.of(deviceID), TerminalText.of(words.joined(separator: ", ")),
            "\(system) \(TerminalText.of(appVersion))", "at \(gatewayID)",
            "since \(WallTime(milliseconds: sinceMs).text)",
        ]
        return columns.joined(separator: "\t")
    }
}

extension Mss_Bus_V1_DeviceChannel {
    /// One line of a device's channels.
    fileprivate var line: String {
        let word =
            switch kind {
            case .user: "user"
            case .device: "device"
            case .globalUser: "global, users"
            case .globalDevice: "global, devices"
            case .UNRECOGNIZED: "another kind"
            }
        let standing = syncPoint >= head ? "caught up" : "behind"
        return "\(bizType)\t\(word)\tsync point \(syncPoint)\thead \(head)\t\(standing)"
    }
}
