import Credentials
import Crypto
import DeviceProtocol
import Foundation
import MobileSync
import SwiftProtobuf
import SyncModel
import TestSupport

/// An instance of one test, with device keys that the tool created, and connects that these keys sign.
struct SignedInstance: Sendable {
    let stack: Stack
    let id: String

    /// Creates the instance, with the Sync ID `UCHAT` for users and `DEVICE` for devices.
    ///
    /// - Parameter settings: members of the instance beside its id, as JSON.
    static func make(_ stack: Stack, _ id: String, _ settings: String = "") async throws -> SignedInstance {
        let file = stack.folder.appending(path: "\(id).json")
        let control = """
            {"instances": [{"instanceId": "\(id)"\(settings)}],
             "configurations": [
              {"instanceId": "\(id)", "bizType": "UCHAT", "description": "", "scope": "appointed", "target": "user",
               "repush": "all", "multiDevice": false},
              {"instanceId": "\(id)", "bizType": "DEVICE", "description": "", "scope": "appointed",
               "target": "device", "repush": "all"}]}
            """
        try control.write(to: file, atomically: true, encoding: .utf8)
        let instance = SignedInstance(stack: stack, id: id)
        try await instance.tool("apply", file.path)
        return instance
    }

    /// Runs `mssctl`. Returns the output.
    @discardableResult
    func tool(_ arguments: String...) async throws -> String {
        let outcome = try await stack.tool(arguments)
        guard outcome.status == 0 else { throw Failure("mssctl \(arguments): \(outcome.output)") }
        return outcome.output
    }

    /// Changes settings of the instance; they are then in force on every gateway.
    func set(_ flags: String...) async throws {
        let outcome = try await stack.tool(["instance", "set", id] + flags)
        guard outcome.status == 0 else { throw Failure("mssctl instance set: \(outcome.output)") }
    }

    /// Creates a device key.
    func makeKey() async throws -> SyncAppKey {
        let (id, secret) = try await createKey(purpose: "device")
        return try SyncAppKey(id: id, secret: secret)
    }

    /// Creates a key whose secret is in a file.
    func makeKeyFile(purpose: String = "device") async throws -> (key: String, secretFile: String) {
        let (key, secret) = try await createKey(purpose: purpose)
        let file = stack.folder.appending(path: "\(key).secret")
        try secret.write(to: file, atomically: true, encoding: .utf8)
        return (key, file.path)
    }

    private func createKey(purpose: String) async throws -> (id: String, secret: String) {
        let output = try await tool("key", "create", "--instance", id, "--purpose", purpose)
        func value(_ name: String) throws -> String {
            let line = output.split(separator: "\n").first { $0.hasPrefix("\(name)\t") }
            return String(try requireValue(line, "no \(name) in \(output)").dropFirst(name.count + 1))
        }
        return (try value("key"), try value("secret"))
    }

    /// Returns a Connect to this instance; signed when there is a key.
    func connect(
        device: String, user: String, key: SyncAppKey? = nil, at time: WallTime? = nil, secret: UInt8? = nil
    ) -> Mss_Device_V1_Packet {
        let packet = RawDevice.connectPacket(device: device, user: user) {
            $0.instanceID = id
            if let secret { $0.deviceSecret = Data(repeating: secret, count: 32) }
        }
        let now = WallTime(milliseconds: Int64(Date().timeIntervalSince1970 * 1_000))
        return key.map { ConnectSigner($0).signed(packet, now: time ?? now) } ?? packet
    }

    /// Connects over TLS to a gateway and sends the first frame.
    func open(_ packet: Mss_Device_V1_Packet, gateway: Int = 0) async throws -> RawDevice {
        let device = try await RawDevice.open(stack, over: .plain, gateway: gateway)
        try await device.send(packet)
        return device
    }

    /// The gateway's answer: nil for Connected, otherwise its Close, which must be the only frame.
    func answer(to packet: Mss_Device_V1_Packet, gateway: Int = 0) async throws -> Mss_Device_V1_Close? {
        let device = try await open(packet, gateway: gateway)
        try await device.waits(for: "an answer") { !$0.isEmpty }
        guard case .close(let close)? = device.received.first?.body else {
            try await device.disconnect()
            return nil
        }
        try await device.isClosed()
        guard device.received.count == 1 else { throw Failure("more than a Close: \(device.received)") }
        return close
    }

    /// The code of the gateway's Close; nil for Connected.
    func code(_ packet: Mss_Device_V1_Packet, gateway: Int = 0) async throws -> UInt32? {
        try await answer(to: packet, gateway: gateway)?.code
    }
}
