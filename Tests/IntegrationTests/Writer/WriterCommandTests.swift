import BusMessages
import Credentials
import Foundation
import Logging
import PostgreSQL
import ServiceKit
import StoreService
import SwiftProtobuf
import SyncModel
import SyncStore
import TestSupport
import Testing

@testable import AMQP
@testable import OplogWriter

@Suite("Commands of the writer", .enabled(if: TestDatabase.port != nil, "needs MSS_TEST_POSTGRES_PORT"))
struct WriterCommandTests {
    /// Without a broker: replies are dropped, and changes are in the database.
    private static let bus = MessageBus(
        configuration: AMQPConfiguration(host: "127.0.0.1", port: 1, user: "", password: ""), consumptions: [],
        logger: logger)
    private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private static func key(_ number: Int) -> AppKey {
        AppKey(
            id: "k\(number)", purpose: .backend, sealedSecret: [1], limits: KeyLimits(),
            createdAt: WallTime(milliseconds: 0))
    }

    @Test("H9: of keys that are created at the same time two stay, for each instance and purpose")
    func racingKeys() async throws {
        try await TestDatabase.with(connections: 4) { databases in
            for round in 0..<8 {
                let instance = Instance(
                    id: InstanceID("i\(round)"), name: "", isEnabled: true, validatorURL: "", verdictLifetime: .zero)
                _ = try await databases[0].run(ControlStore.put(instance, by: "test"))
                let made = try await withThrowingTaskGroup(of: ControlOutcome.self) { group in
                    for (number, database) in databases.enumerated() {
                        let create = KeyStore.create(Self.key(round * 10 + number), of: instance.id, by: "test")
                        group.addTask { try await database.run(create) }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(made.count { $0.version != nil } == Limits.liveKeys)
            }
            let most = "SELECT max(n)::text FROM (SELECT count(*) n FROM app_key GROUP BY instance_id, purpose) k"
            #expect(try await databases[0].rows(most, columns: 1) == [["\(Limits.liveKeys)"]])
        }
    }

    @Test("SEC16: a repeated command creates one key, and shows its secret once")
    func redelivered() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            try await database.configure()
            let ring = try KeyRing(text: "test-1 AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
            @Sendable func create(_ keyID: String, in instance: String = "app") async throws -> Mss_Bus_V1_ControlReply
            {
                let request = Mss_Bus_V1_CreateKey.with {
                    $0.instanceID = instance
                    $0.purpose = .backend
                    $0.keyID = keyID
                }
                return try await database.asWriter { connection in
                    let work = ControlHandler(bus: Self.bus, ring: ring, logger: Self.logger)
                    return try work.create(request, by: "test", on: connection).control
                }
            }
            let id = "k0123456789abcdef"
            let first = try await create(id)
            #expect(first.refusal.isEmpty && first.keyID == id && first.secret.count == 32)
            for _ in 0..<2 {
                let again = try await create(id)
                #expect(again.refusal.contains("\(id) was made") && again.secret.isEmpty)
            }
            #expect(try await create(id, in: "other").refusal.contains("no such instance"))
            #expect(try await create("kfedcba9876543210").refusal.isEmpty)
            #expect(try await create(id).refusal.contains("\(id) was made"))
            #expect(try await create("k00000000000000ff").refusal.contains("2 keys of this purpose"))
            for wrong in ["", "k1", "k0123456789ABCDEF", "x0123456789abcdef", "k0123456789abcdeg"] {
                #expect(try await create(wrong).refusal.contains("16 hex digits"), "\(wrong)")
            }
            #expect(try await database.run(KeyStore.all).count == 2)
        }
    }

    @Test("SEC6: claims of nonces do not wait for earlier requests for quota")
    func claimsFirst() async throws {
        try await TestDatabase.with(connections: 1) { databases in
            let database = databases[0]
            let commands: [Mss_Bus_V1_AdmissionCommand] = [
                .with {
                    $0.takeQuota.instanceID = "app"
                    $0.takeQuota.pushes = 1
                    $0.takeQuota.pushesPerDay = 10
                },
                .with {
                    $0.claimNonce.keyID = "k1"
                    $0.claimNonce.nonce = Data([1])
                    $0.claimNonce.expiresAtMs = 4_000_000_000_000
                },
            ]
            try await database.asWriter { connection in
                let delivery = AMQPDelivery(
                    body: [], isRedelivered: false, replyTo: "r", receivedAt: .now, exchange: "", generation: 0,
                    deliveryTag: 1)
                let task = StoreTask(body: CommandBody(delivery), replyTo: "r", commands: commands)
                AdmissionHandler(bus: Self.bus).perform([task], on: connection)
            }
            // Transaction numbers rise in the order of the transactions.
            let order = "SELECT (n.xmin::text::bigint < q.xmin::text::bigint)::text FROM request_nonce n, push_quota q"
            #expect(try await database.rows(order, columns: 1) == [["true"]])
        }
    }
}
