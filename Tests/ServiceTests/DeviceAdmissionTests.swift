import DeviceProtocol
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

@Suite("What a device costs others before its Connect is taken, and after") struct DeviceAdmissionTests {
    private static let key = GatewaySocketFixture.key.secret
    /// Of somebody who does not know the app's.
    private static let foreign = Self.key.map { $0 ^ 1 }

    private func core(_ change: (inout AdmissionLimits) -> Void) throws -> GatewayCore {
        var limits = AdmissionLimits()
        change(&limits)
        return try GatewaySocketFixture.core(limits)
    }

    @Test("SEC2: a device whose Connect is signed is no stranger once that is proven; its end is no failure")
    func signedDevices() throws {
        let core = try core {
            $0.unconnected = 3
            // Of sources whose last connection failed, four at once.
            $0.handshakes = 4
        }
        var devices: [PlayedDevice] = []
        for _ in 0..<9 {
            let device = try PlayedDevice(core)
            try device.connect(secret: Self.key)
            #expect(core.admission.unconnectedCount == 1, "the store has not said that the nonce is new")
            device.isProven()
            #expect(device.isTaken && core.admission.unconnectedCount == 0)
            devices.append(device)
        }
        #expect(devices.count { $0.isConnected } == 9)
        for device in devices { try device.disconnect() }
        for _ in 0..<6 {
            let device = try PlayedDevice(core)
            try device.connect(secret: Self.key)
            device.isProven()
            try device.disconnect()
        }
    }

    @Test("SEC11: who has no key of the app uses up none of its connects, and none of a user's binds")
    func strangers() throws {
        let core = try core {
            $0.appConnects = 1
            $0.userBinds = 1
        }
        for _ in 0..<20 {
            let stranger = try PlayedDevice(core)
            try stranger.connect(user: "u", secret: Self.foreign)
            #expect(stranger.closeCode == CloseCode.signatureRefused.rawValue)
        }
        for _ in 0..<4 {
            let device = try PlayedDevice(core)
            try device.connect(user: "u", secret: Self.key)
            device.isProven()
            #expect(device.isTaken)
        }
        // More than come anew meanwhile.
        let codes = try (0..<40).map { _ in
            let device = try PlayedDevice(core)
            try device.connect(user: "v", secret: Self.key)
            return device.closeCode
        }
        #expect(codes.contains(CloseCode.overloaded.rawValue), "refused before the store is asked about the nonce")
    }

    @Test("SEC11: frames behind a Connect that is not proven cost no app anything")
    func framesOfStrangers() throws {
        let core = try core { $0.appRequests = 1 }
        let (stranger, device) = (try PlayedDevice(core), try PlayedDevice(core))
        try stranger.connect(secret: Self.key)
        for _ in 0..<50 { try stranger.send { $0.historyRequest.requestNumber = 1 } }
        try device.connect(secret: Self.key)
        device.isProven()
        let id = try #require(device.instanceID)
        #expect(core.admission.took(.request, of: id, at: .now) == .zero)
    }

    @Test("SEC11: of one app too many connect: 2001; another app's devices do not")
    func appConnects() throws {
        let core = try core { $0.appConnects = 1 }
        let codes = try (0..<40).map { _ in
            let device = try PlayedDevice(core)
            try device.connect()
            return device.closeCode
        }
        #expect(codes.prefix(4).allSatisfy { $0 == nil } && codes.contains(CloseCode.overloaded.rawValue))
        let other = try PlayedDevice(core)
        try other.connect(secret: Self.key)
        other.isProven()
        #expect(other.isTaken)
    }

    @Test("SEC11: one user is bound too often: 2001, at the connect or later; other users are bound")
    func userBinds() throws {
        let core = try core { $0.userBinds = 1 }
        let codes = try (0..<40).map { _ in
            let device = try PlayedDevice(core)
            try device.connect(user: "u")
            return device.closeCode
        }
        #expect(codes.prefix(4).allSatisfy { $0 == nil } && codes.contains(CloseCode.overloaded.rawValue))
        let device = try PlayedDevice(core)
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
