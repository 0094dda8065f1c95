import DeviceProtocol
import Foundation
import NIOCore
import SwiftProtobuf
import TestSupport
import Testing

@testable import Gateway
@testable import ServiceKit

@Suite("A gateway under attack, on real sockets", .serialized)
struct GatewayFloodTests {
    /// Opens thirty connections, and waits until those above the source's limit are closed: four at once are in it, and
    /// one more for each second.
    private func attack(_ open: () async throws -> SocketDevice) async throws -> [SocketDevice] {
        let start = ContinuousClock.now
        var attackers: [SocketDevice] = []
        for _ in 0..<30 { attackers.append(try await open()) }
        let limit = 6 + Int(start.duration(to: .now) / .seconds(1))
        try #require(limit < 30, "the machine was too slow to exceed the limit")
        try await eventually("those above the limit are closed", within: .seconds(30)) {
            attackers.count(where: \.isOpen) <= limit
        }
        return attackers
    }

    @Test("SEC2: too many connections of a source are closed before TLS; a device of another source gets in")
    func sourceRate() async throws {
        try await GatewaySocketFixture.serve {
            $0.sourceConnections = 1
        } _: { gateway in
            let attackers = try await attack {
                try await SocketDevice.open(gateway, from: "127.0.0.2", isTLS: false)
            }
            let open = attackers.count(where: \.isOpen)
            #expect(open >= 4)
            try await SocketDevice.open(gateway, from: "127.0.0.3").isServed()
            for attacker in attackers where attacker.isOpen { try await attacker.close() }
        }
    }

    @Test("SEC2: behind a balancer limits use the source of the PROXY header, version 1 or 2")
    func balancer() async throws {
        try await GatewaySocketFixture.serve {
            $0.sourceConnections = 1
            $0.trustedProxies = [IPRange("127.0.1.0/24")].compactMap { $0 }
        } _: { gateway in
            func open(_ header: [UInt8], isTLS: Bool = true) async throws -> SocketDevice {
                // A segment can also end within the header.
                let pieces = [Array(header.prefix(9)), Array(header.dropFirst(9))]
                return try await SocketDevice.open(gateway, from: "127.0.1.7", isTLS: isTLS, preface: pieces)
            }
            // Many sources behind one address. Each source makes as many connections as it may.
            for number in 1...40 {
                try await open(ProxyHeaderTests.first("203.0.113.\(number)")).isServed()
                try await open(ProxyHeaderTests.second(0x21, 0x11, [203, 0, 113, UInt8(number)])).isServed()
            }
            let attackers = try await attack { try await open(ProxyHeaderTests.first("192.0.2.1"), isTLS: false) }
            // The load balancer's health check.
            try await open(ProxyHeaderTests.second(0x20, 0, [])).isServed()
            try await SocketDevice.open(gateway, from: "127.0.0.3").isServed()
            for attacker in attackers where attacker.isOpen { try await attacker.close() }
        }
    }

    @Test("SEC2: a balancer's address needs the header, and other addresses must not send it")
    func noHeader() async throws {
        try await GatewaySocketFixture.serve {
            $0.trustedProxies = [IPRange("127.0.1.7")].compactMap { $0 }
        } _: { gateway in
            let plain = try await SocketDevice.open(gateway, from: "127.0.1.7")
            try await plain.closeCode()
            let header = ProxyHeaderTests.first("203.0.113.1")
            let liar = try await SocketDevice.open(gateway, from: "127.0.1.8", isTLS: false, preface: [header])
            try await liar.closeCode()
            #expect(gateway.runtime.admission.unconnectedCount == 0)
        }
    }

    @Test("SEC2: at the cap of connections without Connect the largest source loses its oldest; devices get in")
    func cap() async throws {
        try await GatewaySocketFixture.serve {
            $0.unconnected = 10
            $0.sourceConnections = 100
        } _: { gateway in
            var attackers: [SocketDevice] = []
            // Silent connections, half a handshake, and a full handshake without Connect.
            for index in 0..<11 {
                attackers.append(try await SocketDevice.open(gateway, from: "127.0.0.2", isTLS: index >= 5))
            }
            try await eventually("one is refused", within: .seconds(10)) { attackers.count(where: \.isOpen) == 10 }
            for _ in 0..<5 {
                try await SocketDevice.open(gateway, from: "127.0.0.3").isServed()
                // After its Connect a device no longer counts, so the next one finds nine attackers and one free place.
                try await eventually("one gave way", within: .seconds(10)) { attackers.count(where: \.isOpen) == 9 }
            }
            for attacker in attackers where attacker.isOpen { try await attacker.close() }
        }
    }

    @Test("SEC2: failing sources get a part of the handshakes only; a device of another source gets in")
    func handshakes() async throws {
        try await GatewaySocketFixture.serve {
            $0.suspectHandshakes = 1
        } _: { gateway in
            let desk = gateway.runtime.admission
            var isRefused = false
            for index in 0..<400 where !isRefused {
                let attacker = try await SocketDevice.open(gateway, from: "127.0.0.\(2 + index % 4)", isTLS: false)
                try await eventually("let in or refused", within: .seconds(10)) {
                    desk.unconnectedCount == 1 || !attacker.isOpen
                }
                isRefused = !attacker.isOpen
                try? await attacker.close()
                try await eventually("noticed", within: .seconds(10)) { desk.unconnectedCount == 0 }
            }
            #expect(isRefused)
            try await SocketDevice.open(gateway, from: "127.0.0.9").isServed()
        }
    }

    @Test("SEC2: a connection without Connect in time is closed, at any stage")
    func deadline() async throws {
        try await GatewaySocketFixture.serve(connectDeadline: .seconds(2)) { gateway in
            let silent = try await SocketDevice.open(gateway, isTLS: false)
            let half = try await SocketDevice.open(gateway, isTLS: false)
            try await half.send(ByteBuffer(bytes: [22, 3, 1, 2]))
            let cut = try await SocketDevice.open(gateway)
            try await cut.send(ByteBuffer(bytes: [0, 0, 0, 9, 1]))
            for device in [silent, half] { #expect(try await device.closeCode() == nil) }
            // The tick of the next second closes a connection with a session.
            try await eventually("closed", within: .seconds(5)) {
                gateway.runtime.tick()
                return !cut.isOpen
            }
            #expect(try await cut.closeCode() == CloseCode.idle.rawValue)
            try await eventually("none is left", within: .seconds(5)) {
                gateway.runtime.admission.unconnectedCount == 0
            }
        }
    }

    @Test("SEC2: a device that comes back resumes its TLS session")
    func resumption() async throws {
        try await GatewaySocketFixture.serve { gateway in
            let outcome = try await Command.run(
                URL(fileURLWithPath: "/usr/bin/env"),
                ["python3", "-c", Self.resuming, "\(gateway.port)", gateway.authority],
                environment: ProcessInfo.processInfo.environment)
            #expect(outcome.output == "TLSv1.2 True\nTLSv1.3 True\n")
        }
    }

    /// Connects twice with each version of TLS, and prints whether the second handshake resumed the first session.
    private static let resuming = """
        import socket, ssl, sys
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = ssl.create_default_context(cafile=sys.argv[2])
            context.minimum_version = context.maximum_version = version
            context.set_alpn_protocols(["mss/1"])
            session = None
            for _ in range(2):
                with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as plain:
                    with context.wrap_socket(plain, server_hostname="localhost", session=session) as device:
                        device.sendall(bytes([0, 0, 0, 0]))
                        device.recv(100)
                        session = device.session
                        reused = device.session_reused
            print(device.version() or version.name.replace("_", "."), reused)
        """

    @Test("SEC9: on a socket: no Connect, too large or no frame is closed with 5000, an unknown app with 5001")
    func firstFrames() async throws {
        try await GatewaySocketFixture.serve { gateway in
            func code(_ isConnected: Bool, _ bytes: [UInt8]) async throws -> UInt32? {
                let device = try await SocketDevice.open(gateway)
                if isConnected { try await device.sendConnect() }
                try await device.send(ByteBuffer(bytes: bytes))
                return try await device.closeCode()
            }
            let ping: [UInt8] = [0, 0, 0, 4, 0x62, 2, 8, 7]
            let unknown: [UInt8] = [0, 0, 0, 5, 0xfa, 0x06, 2, 1, 2]
            for isConnected in [false, true] {
                #expect(try await code(isConnected, [0, 1, 0, 1, 0x0a]) == 5000, "65,537 bytes")
                #expect(try await code(isConnected, [0, 4, 0, 1]) == 5000, "262,145 bytes")
                #expect(try await code(isConnected, [0, 0, 0, 1, 0xff]) == 5000, "no packet")
            }
            #expect(try await code(false, ping) == 5000)
            #expect(try await code(false, unknown) == 5000)
            let device = try await SocketDevice.open(gateway)
            try await device.sendConnect()
            try await device.send(ByteBuffer(bytes: unknown))
            try await device.send { $0.ping.number = 7 }
            try await eventually("ignored", within: .seconds(5)) { device.received.contains { $0.pong.number == 7 } }
            let stranger = try await SocketDevice.open(gateway)
            try await stranger.send {
                $0.connect.protocolVersion = 1
                $0.connect.instanceID = "none"
            }
            #expect(try await stranger.closeCode() == 5001)
        }
    }

    @Test("SEC11: a flooding device is closed with 2002 and a delay; another device is answered meanwhile")
    func flood() async throws {
        try await GatewaySocketFixture.serve {
            $0.deviceFrames = 100
        } _: { gateway in
            let (flooder, other) = (try await SocketDevice.open(gateway), try await SocketDevice.open(gateway))
            try await other.isServed()
            try await flooder.sendConnect()
            var pings = ByteBuffer()
            for _ in 0..<2_000 { PacketEncoder.encode(.with { $0.ping.number = 1 }, into: &pings) }
            try? await flooder.send(pings)
            #expect(try await flooder.closeCode() == CloseCode.tooManyFrames.rawValue)
            #expect((10_000...60_000).contains(flooder.received.last?.close.retryAfterMs ?? 0))
            let pongs = flooder.received.count { $0.pong.number == 1 }
            #expect(pongs < 1_000, "no more than is saved up, and owed")
            try await other.send { $0.ping.number = 9 }
            try await eventually("a pong", within: .seconds(5)) { other.received.contains { $0.pong.number == 9 } }
        }
    }

    @Test("SEC11: some devices of an app that floods with connects get 2001 and a delay")
    func appFlood() async throws {
        try await GatewaySocketFixture.serve {
            $0.appConnects = 1
        } _: { gateway in
            // Four at once, and one more for each second that the connections take.
            var last: Mss_Device_V1_Packet?
            for _ in 0..<100 where last?.close.code != CloseCode.overloaded.rawValue {
                let device = try await SocketDevice.open(gateway)
                try await device.sendConnect()
                // The connection may already be closed.
                try? await device.send { $0.ping.number = 7 }
                try await eventually("served or refused", within: .seconds(10)) { !device.received.isEmpty }
                last = device.received.last
            }
            #expect(last?.close.code == CloseCode.overloaded.rawValue)
            #expect((1_000...10_000).contains(last?.close.retryAfterMs ?? 0))
        }
    }
}
