import BusMessages
import Credentials
import Crypto
import DeviceProtocol
import Foundation
import SwiftProtobuf
import SyncModel
import Testing

@testable import Gateway

@Suite("SEC9: connects that are signed") struct SignedConnectTests {
    private static let keys = ["k1": SymmetricKey(size: .bits256), "k2": SymmetricKey(size: .bits256)]
    private static let now = WallTime(milliseconds: 1_700_000_000_000)

    private static func key(_ id: String, for purpose: AppKey.Purpose = .device) -> AppKey {
        AppKey(
            id: id, purpose: purpose, sealedSecret: [], limits: KeyLimits(), createdAt: WallTime(milliseconds: 0))
    }

    private static func bench(_ keys: [AppKey] = [key("k1")], requires: Bool = true) -> SessionBench {
        var bench = SessionBench()
        bench.instance.requiresSignature = requires
        bench.instance.keys = keys
        bench.secrets = Self.keys
        bench.wallTime = now
        return bench
    }

    /// A Connect to the test's instance, signed by a key by default.
    private static func connect(
        by keyID: String? = "k1", at time: WallTime = now, _ more: (inout Mss_Device_V1_Connect) -> Void = { _ in }
    ) throws -> Mss_Device_V1_Packet {
        var connect = ConnectSignatureTests.connect
        connect.instanceID = "i"
        connect.clearSignature()
        if let keyID {
            connect.signature.keyID = keyID
            connect.signature.timestampMs = time.milliseconds
            connect.signature.nonce = Data(RandomBytes.make(16))
        }
        more(&connect)
        if let keyID {
            let secret = try #require(keys[keyID])
            connect.signature.mac = Data(ConnectSignature.mac(of: connect.signedParts, by: secret))
        }
        return .with { $0.connect = connect }
    }

    @Test("SEC9: without a signature nothing is registered or answered") func unsigned() throws {
        var bench = Self.bench()
        let actions = bench.handle(.frame(try Self.connect(by: nil)))
        #expect(actions.closeCode == .signatureRefused && actions.count == 1)
    }

    @Test("SEC9: with one, only its nonce is claimed; then the session registers") func signed() throws {
        var bench = Self.bench()
        let packet = try Self.connect()
        let actions = bench.handle(.frame(packet))
        let claim = NonceClaim(
            keyID: "k1", nonce: [UInt8](packet.connect.signature.nonce), expiresAt: Self.now + .seconds(600))
        #expect(actions.claims == [claim] && actions.count == 1)
        #expect(bench.machine.identity == nil)
        #expect(bench.handle(.claimed(true)).opens == 1)
        #expect(
            bench.handle(.registered(SessionBench.reply([]), bindNumber: 1)).sent.first == "connected"
        )
    }

    @Test("H9: a used nonce is refused; an unavailable store only delays the device")
    func replays() throws {
        for (isFresh, code) in [(false, CloseCode.signatureRefused), (nil, .unavailable)] {
            var bench = Self.bench()
            _ = bench.handle(.frame(try Self.connect()))
            let actions = bench.handle(.claimed(isFresh))
            #expect(actions.closeCode == code && actions.count == 1)
            #expect(bench.handle(.claimed(true)).isEmpty)
        }
        #expect(CloseCode.Group(code: CloseCode.unavailable.rawValue) == .reconnectLater)
    }

    @Test("SEC9: a Connect with any change is refused", arguments: ConnectSignatureTests.changes.map(\.0))
    func flipped(name: String) throws {
        let change = try #require(ConnectSignatureTests.changes.first { $0.0 == name }).1
        // The other key and the instance of a changed id also exist.
        var bench = Self.bench([Self.key("k1"), Self.key("k2")])
        var packet = try Self.connect()
        change(&packet.connect)
        bench.instance.id = InstanceID(packet.connect.instanceID)
        let actions = bench.handle(.frame(packet))
        #expect(actions.closeCode == .signatureRefused && actions.count == 1, "\(name)")
    }

    @Test("SEC6: a clock may be wrong by 300 s; beyond that the device gets the time and may retry")
    func clocks() throws {
        for seconds in [-300, 0, 300] {
            var bench = Self.bench()
            let packet = try Self.connect(at: Self.now + .seconds(seconds))
            #expect(bench.handle(.frame(packet)).claims.count == 1)
        }
        for milliseconds in [-300_001, 300_001, 365 * 86_400_000, .min / 2] {
            var bench = Self.bench()
            let packet = try Self.connect(at: Self.now + .milliseconds(milliseconds))
            let actions = bench.handle(.frame(packet))
            #expect(actions.closeCode == .clockOff && actions.count == 1)
        }
        #expect(CloseCode.Group(code: CloseCode.clockOff.rawValue) == .reconnectNow)
    }

    @Test("SEC6: a wrong signature is refused before the clock is corrected")
    func clockOfStrangers() throws {
        var bench = Self.bench()
        var packet = try Self.connect(at: Self.now + .seconds(1_000))
        packet.connect.signature.mac[0] ^= 1
        #expect(bench.handle(.frame(packet)).closeCode == .signatureRefused)
    }

    @Test(
        "SEC6: nonces have 16 to 32 bytes", arguments: [(0, false), (15, false), (16, true), (32, true), (33, false)])
    func nonces(bytes: Int, isTaken: Bool) throws {
        var bench = Self.bench()
        let packet = try Self.connect { $0.signature.nonce = Data(RandomBytes.make(bytes)) }
        #expect(bench.handle(.frame(packet)).claims.isEmpty == !isTaken)
    }

    @Test("H9: two keys are valid together; a removed key, and one for another purpose, are refused")
    func rotation() throws {
        for id in ["k1", "k2"] {
            var bench = Self.bench([Self.key("k1"), Self.key("k2")])
            let packet = try Self.connect(by: id)
            #expect(bench.handle(.frame(packet)).claims.count == 1)
            bench = Self.bench([Self.key(id, for: .backend)])
            #expect(bench.handle(.frame(packet)).closeCode == .signatureRefused)
        }
        var bench = Self.bench([Self.key("k2")])
        let packet = try Self.connect(by: "k1")
        #expect(bench.handle(.frame(packet)).closeCode == .signatureRefused)
    }

    @Test("SEC16: a gateway that cannot open the key does not close devices for good") func closedKey() throws {
        var bench = Self.bench()
        bench.secrets = [:]
        let packet = try Self.connect()
        #expect(bench.handle(.frame(packet)).closeCode == .unavailable)
    }

    @Test("H9: with the switch off signatures are ignored, and open connections stay when it is turned on")
    func switchedOff() throws {
        var bench = Self.bench(requires: false)
        var packet = try Self.connect()
        packet.connect.signature.mac[0] ^= 1
        #expect(bench.handle(.frame(packet)).opens == 1)
        _ = bench.handle(.registered(SessionBench.reply([]), bindNumber: 1))
        bench.instance.requiresSignature = true
        #expect(bench.handle(.contextChanged).closeCode == nil)
        let bound = bench.receive {
            $0.bind.bindNumber = 2
            $0.bind.userID = "u2"
        }
        #expect(bound.opens == 1 && bound.closeCode == nil)
    }

    @Test("SEC9: a Connect that waits for its registration must meet rules that become stricter meanwhile")
    func rulesChangeWhileWaiting() throws {
        var bench = Self.bench(requires: false)
        let unsigned = try Self.connect(by: nil)
        #expect(bench.handle(.frame(unsigned)).opens == 1)
        bench.instance.requiresSignature = true
        let refused = bench.handle(.registered(SessionBench.reply([]), bindNumber: 1))
        #expect(refused.closeCode == .signatureRefused && refused.count == 1)
        for (keys, code) in [([Self.key("k1")], CloseCode?.none), ([], .signatureRefused)] {
            bench = Self.bench()
            _ = bench.handle(.frame(try Self.connect()))
            _ = bench.handle(.claimed(true))
            bench.instance.keys = keys
            let opened = bench.handle(.registered(SessionBench.reply([]), bindNumber: 1))
            #expect(opened.closeCode == code)
        }
    }

    @Test(
        "SEC9: no session opens by old rules: it registers again under a lease that holds",
        arguments: [
            (sent: (true, 1), answered: (false, 1)), (sent: (false, 1), answered: (true, 1)),
            (sent: (true, 1), answered: (true, 2)),
        ] as [(sent: (Bool, Int64), answered: (Bool, Int64))])
    func opensUnderALease(sent: (Bool, Int64), answered: (Bool, Int64)) throws {
        var bench = Self.bench(requires: false)
        (bench.holdsLease, bench.leaseEpoch) = sent
        _ = bench.handle(.frame(try Self.connect(by: nil)))
        (bench.holdsLease, bench.leaseEpoch) = answered
        #expect(bench.handle(.registered(SessionBench.reply([]), bindNumber: 1)).isEmpty)
        (bench.holdsLease, bench.leaseEpoch) = (true, 2)
        bench.now += .seconds(1)
        #expect(bench.handle(.ticked).opens == 1)
        let opened = bench.handle(.registered(SessionBench.reply([]), bindNumber: 1))
        #expect(opened.sent.first == "connected")
    }

    @Test("SEC9: up to 16 frames after a Connect wait for its check")
    func framesBehind() throws {
        var bench = Self.bench()
        _ = bench.handle(.frame(try Self.connect()))
        let bound = bench.receive {
            $0.bind.bindNumber = 2
            $0.bind.userID = "u2"
        }
        #expect(bound.isEmpty)
        #expect(bench.receive { $0.ping.number = 1 }.sent == ["pong"])
        #expect(bench.receive { $0.storedAck = .init() }.isEmpty)
        let actions = bench.handle(.claimed(true))
        #expect(actions.announced.map(\.userID) == [UserID("u1")])
        #expect(bench.machine.identity?.userID == UserID("u2"))
        bench = Self.bench()
        _ = bench.handle(.frame(try Self.connect()))
        for _ in 0..<16 { #expect(bench.receive { $0.foreground.foreground = true }.isEmpty) }
        #expect(bench.receive { $0.foreground.foreground = true }.closeCode == .protocolViolation)
    }

    @Test("SEC9: while the signature is being checked a second Connect, and a Close, end the connection")
    func endsWhileChecking() throws {
        var bench = Self.bench()
        _ = bench.handle(.frame(try Self.connect()))
        let packet = try Self.connect()
        #expect(bench.handle(.frame(packet)).closeCode == .protocolViolation)
        #expect(bench.handle(.claimed(true)).isEmpty)
        bench = Self.bench()
        _ = bench.handle(.frame(try Self.connect()))
        #expect(bench.handle(.drained).closeCode == .draining)
        bench = Self.bench()
        _ = bench.handle(.frame(try Self.connect()))
        #expect(bench.receive { $0.close.code = 1_000 }.closeCode == .normal)
        #expect(bench.handle(.claimed(true)).isEmpty)
    }

    // MARK: Secrets

    @Test(
        "SEC9: the store gets the digest of the secret; a secret of another length is refused",
        arguments: [(0, true), (1, false), (15, false), (16, true), (64, true), (65, false)])
    func secrets(bytes: Int, isTaken: Bool) throws {
        var bench = SessionBench()
        let secret = Data(RandomBytes.make(bytes))
        let actions = bench.handle(.frame(try Self.connect(by: nil) { $0.deviceSecret = secret }))
        #expect(actions.closeCode == (isTaken ? nil : .protocolViolation))
        guard isTaken else { return }
        let digest = bytes == 0 ? [] : Array(SHA256.hash(data: secret))
        #expect(actions.announced.map(\.connect.secretDigest) == [digest])
    }

    @Test("SEC9: a device id that belongs to another secret: the device must register again")
    func wrongSecret() throws {
        var bench = SessionBench()
        _ = bench.handle(.frame(try Self.connect(by: nil)))
        let actions = bench.handle(.registered(.with { $0.wrongDeviceSecret = true }, bindNumber: 1))
        #expect(actions.closeCode == .registerAnew && actions.count == 1)
        #expect(bench.machine.connectionEpoch == 0, "there is nothing to take off the record")
    }

    // MARK: Sessions

    @Test(
        "V1: a session id has the instance's limit, a user id 100",
        arguments: [
            (100, 100, 100, true), (100, 100, 101, false), (4_096, 100, 4_096, true), (4_096, 100, 4_097, false),
            (4_096, 101, 1, false),
        ])
    func sessionUnits(allowed: Int, user: Int, session: Int, isTaken: Bool) throws {
        var bench = SessionBench()
        bench.instance.sessionUnits = allowed
        // Each character has three bytes in UTF-8.
        let packet = try Self.connect(by: nil) {
            $0.bind.userID = String(repeating: "u", count: user)
            $0.bind.sessionID = String(repeating: "中", count: session)
        }
        let bytes: [UInt8] = try packet.serializedBytes()
        #expect(bytes.count < DeviceProtocolLimits.toGatewayBytes)
        let actions = bench.handle(.frame(packet))
        #expect(actions.opens == (isTaken ? 1 : 0))
        guard !isTaken else { return }
        #expect(actions.sent == ["bindResult"] && actions.closeCode == .protocolViolation)
        guard case .send(let result)? = actions.first else { return }
        #expect(!result.bindResult.accepted && result.bindResult.reason.contains("at most \(allowed)"))
    }
}

extension [SessionAction] {
    fileprivate var claims: [NonceClaim] { compactMap { if case .claim(let claim) = $0 { claim } else { nil } } }
}
