import PostgreSQL
import SyncModel
import SyncStore
import TestSupport

/// A fact, or the acceptance of a push, about the channels of `StatisticsFact.prepare`.
enum StatisticsFact: Hashable {
    case accepted(channel: Int64, oplog: Int64, isLive: Bool = false, at: Int64)
    case handedOut(channel: Int64, oplog: Int64, device: Int64 = 0, at: Int64)
    case confirmed(channel: Int64, oplog: Int64, device: Int64 = 0, at: Int64)
    case skipped(channel: Int64, oplog: Int64, device: Int64 = 0, at: Int64)
    case resent(channel: Int64, oplog: Int64, device: Int64 = 0, attempts: Int, at: Int64)
    case discarded(channel: Int64, device: Int64 = 0, after: Int64, upto: Int64, at: Int64)
    case connected(gateway: Int64, devices: Int, at: Int64)

    /// 2023-11-14 23:59:59.500 UTC, half a second before midnight.
    static let evening: Int64 = 1_700_006_399_500

    /// Channels 1 and 2 are of users u1 and u2 and of one Sync ID, 3 is of u1 and another Sync ID, 4 of device d1; 5 is
    /// global for users, 6 global for devices. Device d0 belongs to u0, and so on.
    static func prepare(_ database: TestDatabase) async throws {
        try await database.execute(
            """
            INSERT INTO channel (channel_id, instance_id, kind, target, biz_type) OVERRIDING SYSTEM VALUE
            VALUES (1, 'app', 0, 'u1', 'A'), (2, 'app', 0, 'u2', 'A'), (3, 'app', 0, 'u1', 'B'),
                (4, 'app', 1, 'd1', 'D'), (5, 'app', 2, '', 'G'), (6, 'app', 3, '', 'H')
            """)
    }

    /// The batch of their facts; an acceptance is no fact.
    static func batch(_ facts: [StatisticsFact]) -> StatisticsBatch {
        var batch = StatisticsBatch()
        for fact in facts { fact.add(to: &batch) }
        return batch
    }

    /// The statement that folds the acceptances among them; nil without acceptances.
    static func acceptance(of facts: [StatisticsFact]) -> String? {
        var first: [StatisticsBatch.OplogKey: (at: Int64, isLive: Bool)] = [:]
        for case .accepted(let channel, let oplog, let isLive, let at) in facts {
            let key = StatisticsBatch.OplogKey(channelID: channel, oplogID: OplogID(oplog))
            first[key] = (min(at, first[key]?.at ?? at), isLive)
        }
        guard !first.isEmpty else { return nil }
        let oplogs = Array(first)
        let arrays = [
            oplogs.map { "\($0.key.channelID)" }, oplogs.map { "\($0.key.oplogID.value)" },
            oplogs.map { "\($0.value.at)" }, oplogs.map { "\($0.value.isLive)" },
        ].map { "'{\($0.joined(separator: ","))}'" }
        return "SELECT fold_accepted_oplogs(\(arrays.joined(separator: ", ")))"
    }

    private func add(to batch: inout StatisticsBatch) {
        switch self {
        case .accepted: break
        case .handedOut(let channel, let oplog, let device, let at):
            let handOut = StatisticsBatch.HandOut(
                at: time(at), operatingSystem: at % 3 == 0 ? nil : .android, appVersion: "1.\(at % 4)",
                user: channel == 5 ? "u\(device)" : "")
            batch.handedOut(key(channel, oplog), to: DeviceID("d\(device)"), as: handOut)
        case .confirmed(let channel, let oplog, let device, let at):
            batch.confirmed(key(channel, oplog), by: DeviceID("d\(device)"), at: time(at))
        case .skipped(let channel, let oplog, let device, let at):
            let reason: SkipReason = at % 2 == 0 ? .version : .expired
            batch.skipped(key(channel, oplog), for: DeviceID("d\(device)"), because: reason, at: time(at))
        case .resent(let channel, let oplog, let device, let attempts, let at):
            batch.resent(
                key(channel, oplog), by: DeviceID("d\(device)"), user: "u\(at % 2)", attempts: attempts,
                isDead: attempts == 7, at: time(at))
        case .discarded(let channel, let device, let after, let upto, let at):
            let receiver = StatisticsBatch.ReceiverKey(channelID: channel, deviceID: DeviceID("d\(device)"))
            batch.discarded(receiver, after: OplogID(after), upto: OplogID(upto), at: time(at))
        case .connected(let gateway, let devices, let at):
            batch.connected(devices, of: InstanceID("app"), gatewayID: "g\(gateway)", at: time(at))
        }
    }

    private func key(_ channel: Int64, _ oplog: Int64) -> StatisticsBatch.OplogKey {
        StatisticsBatch.OplogKey(channelID: channel, oplogID: OplogID(oplog))
    }

    private func time(_ milliseconds: Int64) -> WallTime { WallTime(milliseconds: milliseconds) }

    static func random(count: Int) -> [StatisticsFact] {
        (0..<count).map { _ in
            let (channel, oplog) = (Int64.random(in: 1...6), Int64.random(in: 1...80))
            let device = Int64.random(in: 0...2)
            let at = evening + Int64.random(in: -86_400_000...86_400_000)
            return switch Int.random(in: 0..<10) {
            case 0, 1: .accepted(channel: channel, oplog: oplog, isLive: oplog % 4 == 0, at: at)
            case 2, 3, 4: .handedOut(channel: channel, oplog: oplog, device: device, at: at)
            case 5, 6: .confirmed(channel: channel, oplog: oplog, device: device, at: at)
            case 7: .skipped(channel: channel, oplog: oplog, device: device, at: at)
            case 8:
                Bool.random()
                    ? .resent(channel: channel, oplog: oplog, device: device, attempts: .random(in: 2...7), at: at)
                    : .connected(gateway: device, devices: .random(in: 0...9), at: at)
            default:
                .discarded(
                    channel: channel, device: device, after: Int64.random(in: 0..<oplog), upto: oplog, at: at)
            }
        }
    }
}

extension TestDatabase {
    /// Folds facts as the aggregator, then folds acceptances as the owner, in place of the aggregator's reading of
    /// stored pushes.
    func fold(_ facts: [StatisticsFact]) throws(PostgresError) {
        let batch = StatisticsFact.batch(facts)
        if !batch.isEmpty { try fold(batch) }
        if let statement = StatisticsFact.acceptance(of: facts) { try execute(statement) }
    }
}
