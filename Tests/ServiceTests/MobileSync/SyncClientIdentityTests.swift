import Credentials
import Crypto
import DeviceProtocol
import Foundation
import MobileSync
import SwiftProtobuf
import SyncModel
import TestSupport
import Testing

@Suite("SEC9: identity of the client", .timeLimit(.minutes(5)))
struct SyncClientIdentityTests {
    private static let secret = Data(repeating: 0x0f, count: 32).base64EncodedString()

    private static func isSigned(_ connect: Mss_Device_V1_Connect) -> Bool {
        ConnectSignature.isValid(
            [UInt8](connect.signature.mac), of: connect.signedParts,
            by: SymmetricKey(data: Array(repeating: UInt8(0x0f), count: 32)))
    }

    /// Returns the next client's first frame, and closes the connection with a code.
    private static func close(
        _ gateway: FakeGateway, _ code: CloseCode, serverTime: Int64 = 0
    ) async throws -> Mss_Device_V1_Connect {
        let session = try await gateway.accept()
        guard case .connect(let connect)? = try await session.next().body else { throw Failure("no Connect") }
        session.send(
            .with {
                $0.close.code = code.rawValue
                $0.close.serverTimeMs = serverTime
            })
        return connect
    }

    @Test("SEC9: it sends the same 32 random bytes in every start, encrypted on disk if the store is")
    func secretStays() async throws {
        for key in [nil, Array(repeating: UInt8(7), count: 32)] {
            try await FakeGateway.withStore { gateway, store in
                var secrets: [Data] = []
                for _ in 0..<2 {
                    try await ClientApp(port: gateway.port, store: store) { $0.storeKey = key }.running {
                        secrets.append(try await gateway.accept().greet().deviceSecret)
                    }
                }
                #expect(secrets[0].count == 32 && Set(secrets).count == 1)
                var stored = try Data(contentsOf: store)
                stored += (try? Data(contentsOf: URL(filePath: store.path + "-wal"))) ?? Data()
                #expect((stored.range(of: secrets[0]) != nil) == (key == nil))
                if let key {
                    let app = try ClientApp(port: gateway.port, store: store) { $0.storeKey = key }
                    try await app.client.changeStoreKey(to: nil)
                    try await app.running {
                        let connect = try await gateway.accept().greet()
                        #expect(connect.deviceSecret == secrets[0])
                    }
                }
            }
        }
    }

    @Test("K5, SEC9: a re-installed app with the id and the secret of before is the same device; its store keeps them")
    func reinstalled() async throws {
        let folder = URL(filePath: NSTemporaryDirectory()).appending(path: "identity-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try await FakeGateway.with { gateway in
            let (store, reinstalled) = (folder.appending(path: "a.sqlite"), folder.appending(path: "b.sqlite"))
            let secret = Array(repeating: UInt8(9), count: 32)
            for (store, given) in [(store, secret), (reinstalled, secret), (store, nil)] {
                let app = try ClientApp(port: gateway.port, store: store) { $0.deviceSecret = given }
                try await app.running {
                    let connect = try await gateway.accept().greet()
                    #expect(connect.deviceID == "d" && [UInt8](connect.deviceSecret) == secret)
                }
            }
            for count in [15, 65] {
                let error = #expect(throws: SyncError.self) {
                    try ClientApp(port: gateway.port, store: store) {
                        $0.deviceSecret = Array(repeating: 1, count: count)
                    }
                }
                #expect(error?.code == .invalidArgument)
            }
        }
    }

    @Test("SEC9: a foreign device id: it returns as a new device, with its data and its user's positions")
    func registersAnew() async throws {
        try await FakeGateway.withStore { gateway, store in
            var taken = Mss_Device_V1_Connect()
            let app = try ClientApp(port: gateway.port, store: store)
            try await app.running(reads: false) {
                let first = try await gateway.accept()
                let former = try await first.greet()
                first.push([1, 2], after: 0, upto: 2)
                _ = try await first.nextStored()
                first.push(device: [7], after: 0, upto: 7)
                _ = try await first.nextStored()
                first.send(.with { $0.close.code = CloseCode.registerAnew.rawValue })
                let second = try await gateway.accept()
                taken = try await second.greet()
                #expect(former.deviceID == "d" && taken.deviceID != "d" && taken.deviceID == app.client.deviceID)
                #expect(taken.deviceSecret.count == 32 && taken.deviceSecret != former.deviceSecret)
                #expect(taken.storeID == former.storeID)
                #expect(taken.bind.syncPoints.map(\.oplogID) == [2])
                #expect(taken.syncPoints.isEmpty, "the new id's own channel is another")
                #expect(app.events.contains(.registeredAnew(deviceID: taken.deviceID)))
                // The same id now names another oplog.
                second.push(device: [7], after: 0, upto: 7)
                #expect(try await second.nextStored().map(\.upto) == [7])
            }
            let again = try ClientApp(port: gateway.port, store: store)
            try await again.running {
                let connect = try await gateway.accept().greet()
                #expect(connect.deviceID == taken.deviceID && connect.deviceSecret == taken.deviceSecret)
                #expect(connect.syncPoints.map(\.oplogID) == [7])
                try await eventually("all is shown; there is \(again.ids)", within: .seconds(10)) {
                    again.ids.sorted() == [1, 2, 7, 7]
                }
                #expect(again.oplogs.filter { $0.oplogID == 7 }.allSatisfy { $0.userID == nil })
            }
        }
    }

    @Test("K7: it signs with the app's key, anew for each connection; without one it does not") func signs()
        async throws
    {
        try await FakeGateway.withStore { gateway, store in
            let key = try SyncAppKey(id: "k1", secret: Self.secret)
            var nonces: Set<Data> = []
            let app = try ClientApp(port: gateway.port, store: store) { $0.appKey = key }
            try await app.running {
                for _ in 0..<2 {
                    let session = try await gateway.accept()
                    let connect = try await session.greet()
                    #expect(connect.signature.keyID == "k1" && Self.isSigned(connect))
                    #expect(connect.signature.nonce.count == 16)
                    #expect(abs(connect.signature.timestampMs - Int64(Date().timeIntervalSince1970 * 1_000)) < 60_000)
                    nonces.insert(connect.signature.nonce)
                    session.cut()
                }
            }
            #expect(nonces.count == 2)
            try await ClientApp(port: gateway.port, store: store).running {
                let connect = try await gateway.accept().greet()
                #expect(!connect.hasSignature)
            }
        }
    }

    @Test("SEC6: a phone whose clock is wrong by a year gets the time and signs by it, after a restart too")
    func clockHeals() async throws {
        let year: Int64 = 365 * 86_400_000
        @Sendable func now() -> Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }
        try await FakeGateway.withStore { gateway, store in
            let key = try SyncAppKey(id: "k1", secret: Self.secret)
            func app() throws -> ClientApp {
                try ClientApp(port: gateway.port, store: store) {
                    $0.appKey = key
                    $0.clock = { WallTime(milliseconds: now() - year) }
                }
            }
            try await app().running {
                let wrong = try await Self.close(gateway, .clockOff, serverTime: now())
                #expect(abs(wrong.signature.timestampMs - (now() - year)) < 60_000)
                let right = try await gateway.accept().greet()
                #expect(abs(right.signature.timestampMs - now()) < 60_000 && Self.isSigned(right))
            }
            try await app().running {
                let again = try await gateway.accept().greet()
                #expect(abs(again.signature.timestampMs - now()) < 60_000)
            }
        }
    }

    @Test("SEC9: a refused signature ends it for good, with the code") func refused() async throws {
        try await FakeGateway.withStore { gateway, store in
            let app = try ClientApp(port: gateway.port, store: store)
            let error = try await app.running {
                _ = try await Self.close(gateway, .signatureRefused)
                try await eventually("it has heard", within: .seconds(10)) {
                    app.events.contains(.closed(code: 5_003, reason: ""))
                }
            }
            #expect(error?.code == .closedForGood && error?.closeCode == 5_003)
        }
    }

    private static func batch(_ number: Int, of kind: Mss_Device_V1_ChannelKind) -> Mss_Device_V1_ChannelBatch {
        .with {
            $0.kind = kind
            $0.bizType = kind == .user ? "B-\(number)" : "D-\(number)"
            $0.bindNumber = kind == .user ? 1 : 0
            $0.upto = 1 << 52
        }
    }

    @Test("V1: a session id of 4,096 characters and other long values fit into a frame that the gateway accepts")
    func longSession() async throws {
        try await FakeGateway.withStore { gateway, store in
            let session = String(repeating: "中", count: 4_096)
            for round in 0..<2 {
                let app = try ClientApp(port: gateway.port, store: store, user: nil)
                try app.client.bind(userID: "u", sessionID: session)
                #expect(throws: SyncError.self) { try app.client.bind(userID: "u", sessionID: session + "x") }
                for number in 0..<200 * round {
                    try await app.client.suspend(String(repeating: "中", count: 27) + "\(100 + number)")
                }
                try await app.running {
                    let gateway = try await gateway.accept()
                    let connect = try await gateway.greet()
                    #expect(connect.bind.sessionID == session)
                    guard round == 0 else {
                        #expect(connect.bind.syncPoints.count > 300 && connect.syncPoints.count > 300)
                        #expect(connect.bind.syncPoints.count + connect.syncPoints.count < 2_400)
                        return
                    }
                    // Ids of the maximum length, in few transactions.
                    for kind in [Mss_Device_V1_ChannelKind.user, .device] {
                        gateway.send(.with { $0.push.batches = (0..<1_200).map { Self.batch($0, of: kind) } })
                    }
                    try await app.client.isStored(upTo: "D-1199", gateway)
                }
            }
        }
    }
}

extension SyncClient {
    /// Waits for the acknowledgement of a Sync ID.
    fileprivate func isStored(upTo bizType: String, _ session: FakeGateway.Session) async throws {
        while try await !session.nextStored().contains(where: { $0.bizType == bizType }) {}
    }
}

extension FakeGateway.Session {
    /// Pushes ids of the device's own channel.
    fileprivate func push(device ids: [Int64], after: Int64, upto: Int64) {
        let batch = Mss_Device_V1_ChannelBatch.with {
            $0.kind = .device
            $0.bizType = "D"
            $0.after = after
            $0.upto = upto
            $0.entries = ids.map { id in .with { $0.oplogID = id } }
        }
        send(.with { $0.push.batches = [batch] })
    }
}
