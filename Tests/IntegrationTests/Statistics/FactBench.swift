import AMQP
import BusMessages
import Foundation
import Logging
import ServiceKit
import SwiftProtobuf
import SyncModel
import Synchronization
import TestSupport
import Testing

/// Publishes facts about pushes to the broker's queue, as gateways do, for `deploy/bench/facts.sh`.
@Suite(
    "Facts for a benchmark",
    .enabled(if: ProcessInfo.processInfo.environment["MSS_BENCH_AMQP_PORT"] != nil, "deploy/bench/facts.sh runs it"))
struct FactBench {
    static let port = ProcessInfo.processInfo.environment["MSS_BENCH_AMQP_PORT"].flatMap { Int($0) }

    private static func fact(_ channel: Int64, at: Int64, _ set: (inout Mss_Bus_V1_Fact) -> Void) -> Mss_Bus_V1_Fact {
        .with {
            $0.atMs = at
            $0.channelID = channel
            set(&$0)
        }
    }

    /// The facts of one push to a user's single device.
    private static func facts(oplog: Int64) -> [Mss_Bus_V1_Fact] {
        // The same values as in deploy/bench/facts.sh.
        let (channel, now) = (oplog % 100_000 + 1, Int64(Date.now.timeIntervalSince1970 * 1_000))
        return [
            fact(channel, at: now + 4) {
                $0.handedOut.deviceID = "device-\(channel)"
                $0.handedOut.oplogIds = [oplog]
                $0.handedOut.operatingSystem = .android
                $0.handedOut.appVersion = "1.\(channel % 5)"
            },
            fact(channel, at: now + 9) {
                $0.confirmed.deviceID = "device-\(channel)"
                $0.confirmed.oplogIds = [oplog]
            },
        ]
    }

    @Test("all facts are published") func publish() async throws {
        let pushes = Int64(ProcessInfo.processInfo.environment["MSS_BENCH_PUSHES"] ?? "") ?? 10_000
        let bus = MessageBus(
            configuration: AMQPConfiguration(
                host: "127.0.0.1", port: try #require(Self.port), user: "gateway", password: "bench"),
            consumptions: [], logger: Logger(label: "bench"))
        let recorded = Mutex<Int>(0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await bus.run() }
            try await eventually("a connection", within: .seconds(30)) { bus.isConnected }
            // A gateway publishes the facts of 100 ms together; hand-outs and confirmations are in separate bodies.
            for start in stride(from: 0, to: pushes, by: 200) {
                let facts = (start..<min(start + 200, pushes)).map { Self.facts(oplog: $0) }
                for kind in 0..<2 {
                    let body = facts.map { $0[kind] }
                    try bus.record(body) { if $0 { recorded.withLock { $0 += body.count } } }
                }
                let sent = Int(min(start + 200, pushes)) * 2
                try await eventually("the broker keeps up", within: .seconds(30)) {
                    recorded.withLock { $0 > sent - 6_000 }
                }
            }
            try await eventually("all are recorded", within: .seconds(30)) {
                recorded.withLock { $0 == Int(pushes) * 2 }
            }
            print("BENCH \(pushes * 2) facts wait at the broker")
            group.cancelAll()
        }
    }
}
