import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

@Suite("The costs of a device for others before and after its Connect is accepted") struct DeviceAdmissionTests {
    private static let key = GatewaySocketFixture.key.secret
    /// The key of a caller that does not know the app's key.
    private static let foreign = Self.key.map { $0 ^ 1 }

    private func runtime(_ change: (inout AdmissionLimits) -> Void) throws -> GatewayRuntime {
        var limits = AdmissionLimits()
        change(&limits)
        return try GatewaySocketFixture.runtime(limits)
    }

    @Test("SEC2: a device with a proven signature counts as known, and its end is not a failure")
    func signedDevices() throws {
        let runtime = try runtime {
            $0.unconnected = 3
            // At most four handshakes at once from sources whose last connection failed.
            $0.suspectHandshakes = 1
        }
        var devices: [PlayedDevice] = []
        for _ in 0..<9 {
            let device = try PlayedDevice(runtime)
            try device.connect(secret: Self.key)
            #expect(runtime.admission.unconnectedCount == 1, "the store has not said that the nonce is new")
            device.isProven()
            #expect(device.isTaken && runtime.admission.unconnectedCount == 0)
            devices.append(device)
        }
        #expect(devices.count { $0.isConnected } == 9)
        for device in devices { try device.disconnect() }
        for _ in 0..<6 {
            let device = try PlayedDevice(runtime)
            try device.connect(secret: Self.key)
            device.isProven()
            try device.disconnect()
        }
    }

    @Test("SEC11: a caller without the app's key uses none of the app's connects and none of a user's binds")
    func strangers() throws {
        let runtime = try runtime {
            $0.appConnects = 1
            $0.userBinds = 1
        }
        for _ in 0..<20 {
            let stranger = try PlayedDevice(runtime)
            try stranger.connect(user: "u", secret: Self.foreign)
            #expect(stranger.closeCode == CloseCode.signatureRefused.rawValue)
        }
        for _ in 0..<4 {
            let device = try PlayedDevice(runtime)
            try device.connect(user: "u", secret: Self.key)
            device.isProven()
            #expect(device.isTaken)
        }
        // More attempts than the tokens that are refilled meanwhile.
        let codes = try (0..<40).map { _ in
            let device = try PlayedDevice(runtime)
            try device.connect(user: "v", secret: Self.key)
            return device.closeCode
        }
        #expect(codes.contains(CloseCode.overloaded.rawValue), "refused before the store is asked about the nonce")
    }

    @Test("SEC11: frames after an unproven Connect use no app's rate")
    func framesOfStrangers() throws {
        let runtime = try runtime { $0.appRequests = 1 }
        let (stranger, device) = (try PlayedDevice(runtime), try PlayedDevice(runtime))
        try stranger.connect(secret: Self.key)
        for _ in 0..<50 { try stranger.send { $0.historyRequest.requestNumber = 1 } }
        try device.connect(secret: Self.key)
        device.isProven()
        let id = try #require(device.instanceID)
        #expect(runtime.admission.charge(.request, of: id, at: .now) == .zero)
    }

    @Test("SEC11: too many connects of one app: 2001; another app's devices are admitted")
    func appConnects() throws {
        let runtime = try runtime { $0.appConnects = 1 }
        let codes = try (0..<40).map { _ in
            let device = try PlayedDevice(runtime)
            try device.connect()
            return device.closeCode
        }
        #expect(codes.prefix(4).allSatisfy { $0 == nil } && codes.contains(CloseCode.overloaded.rawValue))
        let other = try PlayedDevice(runtime)
        try other.connect(secret: Self.key)
        other.isProven()
        #expect(other.isTaken)
    }

    @Test("SEC11: too many binds of one user: 2001, at the connect or later; other users are bound")
    func userBinds() throws {
        let runtime = try runtime { $0.userBinds = 1 }
        let codes = try (0..<40).map { _ in
            let device = try PlayedDevice(runtime)
            try device.connect(user: "u")
            return device.closeCode
        }
        #expect(codes.prefix(4).allSatisfy { $0 == nil } && codes.contains(CloseCode.overloaded.rawValue))
        let device = try PlayedDevice(runtime)
        try device.connect()
        for number in UInt32(1)...40 {
            try device.send {
                $0.bind.bindNumber = number
                $0.bind.userID = number == 1 ? "v" : ""
            }
        }
        #expect(device.isTaken)
        for number in UInt32(41)...70 where device.isTaken {
            try device.send {
                $0.bind.bindNumber = number
                $0.bind.userID = "u"
            }
        }
        #expect(device.closeCode == CloseCode.overloaded.rawValue)
    }
}
