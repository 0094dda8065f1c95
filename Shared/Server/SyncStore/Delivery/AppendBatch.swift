import PostgreSQL
import SyncModel

/// A batch of pushes as the arguments of `append_oplogs`, where shared values stand once. Pure.
///
/// Channels are in the order of their addresses, in which every writer locks them. A push with the channel and
/// `thirdMsgId` of an earlier one is not sent; it gets the answer of the earlier one.
struct AppendBatch {
    private struct Configuration: Hashable {
        let instanceID: InstanceID
        let kind: ChannelKind
        let bizType: BizType
    }

    private struct Channel {
        let address: ChannelAddress
        let configuration: Int32
        var rows: Int32 = 0
    }

    private struct Key: Hashable {
        let channel: Int
        let thirdMessageID: ThirdMessageID
    }

    private var configurations: [Configuration] = []
    private var channels: [Channel] = []
    /// The pushes that are sent.
    private var rows: [OplogStore.Append] = []
    /// By row, the place of its channel, from 1 on, and its number among the channel's rows.
    private var places: [Int32] = []
    private var numbers: [Int32] = []
    /// By push, the row that answers it, and whether the push repeats that row.
    private(set) var sources: [(row: Int, isRepeat: Bool)] = []

    init(_ pushes: [OplogStore.Append]) {
        channels = Self.channels(of: pushes, &configurations)
        let places = Dictionary(uniqueKeysWithValues: channels.indices.map { (channels[$0].address, $0) })
        var known: [Key: Int] = [:]
        for push in pushes {
            guard let place = places[push.address] else { preconditionFailure("every push has a channel") }
            let key = Key(channel: place, thirdMessageID: push.oplog.thirdMessageID)
            if let row = known[key] {
                sources.append((row, true))
                continue
            }
            known[key] = rows.count
            sources.append((rows.count, false))
            channels[place].rows += 1
            rows.append(push)
            self.places.append(Int32(place) + 1)
            numbers.append(channels[place].rows)
        }
    }

    /// The number of ids that the row's channel draws.
    func drawn(by row: Int) -> Int64 { Int64(channels[Int(places[row]) - 1].rows) }

    /// The number of rows that are sent.
    var rowCount: Int { rows.count }

    /// The arguments of `append_oplogs`, in its order.
    var parameters: [PostgresValue] {
        [
            .textArray(configurations.map(\.instanceID.text)), .int16Array(configurations.map(\.kind.rawValue)),
            .textArray(configurations.map(\.bizType.text)),
            .int32Array(channels.map(\.configuration)), .textArray(channels.map(\.address.target.target)),
            .int32Array(channels.map(\.rows)),
            .int32Array(places), .int32Array(numbers), .textArray(rows.map(\.oplog.thirdMessageID.text)),
            .int64Array(rows.map { OplogStore.stableHash($0.oplog.thirdMessageID.text) }),
            .bytesArray(rows.map(\.oplog.payload)), .boolArray(rows.map(\.oplog.isBinary)),
            .int16Array(rows.map { $0.oplog.targeting.operatingSystem?.rawValue ?? 0 }),
            .textArray(rows.map { $0.oplog.targeting.minimumVersion ?? "" }),
            .textArray(rows.map { $0.oplog.targeting.maximumVersion ?? "" }),
            .int16Array(rows.map { Int16($0.oplog.targeting.share.start) }),
            .int16Array(rows.map { Int16($0.oplog.targeting.share.size) }),
            .int64Array(rows.map(\.oplog.validUntil.milliseconds)), .textArray(rows.map(\.oplog.attributes)),
            .textArray(rows.map(\.oplog.conversation)),
        ]
    }

    private static func channels(
        of pushes: [OplogStore.Append], _ configurations: inout [Configuration]
    ) -> [Channel] {
        var places: [Configuration: Int32] = [:]
        return Set(pushes.map(\.address)).sorted(by: isBefore).map { address in
            let configuration = Configuration(
                instanceID: address.target.instanceID, kind: address.target.kind, bizType: address.bizType)
            if let place = places[configuration] { return Channel(address: address, configuration: place) }
            configurations.append(configuration)
            places[configuration] = Int32(configurations.count)
            return Channel(address: address, configuration: Int32(configurations.count))
        }
    }

    private static func isBefore(_ left: ChannelAddress, _ right: ChannelAddress) -> Bool {
        let (leftTarget, rightTarget) = (left.target, right.target)
        if leftTarget.kind != rightTarget.kind { return leftTarget.kind.rawValue < rightTarget.kind.rawValue }
        if leftTarget.instanceID != rightTarget.instanceID {
            return leftTarget.instanceID.text.precedes(rightTarget.instanceID.text)
        }
        if left.bizType != right.bizType { return left.bizType.text.precedes(right.bizType.text) }
        return leftTarget.target.precedes(rightTarget.target)
    }
}

extension OplogStore {
    /// Stores a batch in one transaction. One answer per push, in order; nil: no enabled instance has an online
    /// configuration for the push (D17).
    ///
    /// - Parameter store: the store of every push. The database refuses a push of another one.
    package static func append(_ pushes: [Append], to store: StoreSchema = .every) -> Query<[Appended?]> {
        let batch = AppendBatch(pushes)
        let sql = """
            SELECT ordinal, head_before, channel, id, is_duplicate, valid_until_ms, created_at_ms, is_persistent,
                is_single_device, checks_session, is_immediate, awaits_outcome, written_at_ms
            FROM \(store.prefix)append_oplogs($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16,
                $17, $18, $19, $20)
            """
        return Query(PostgresStatement(sql, batch.parameters)) { rows throws(PostgresError) in
            var stored = [Appended?](repeating: nil, count: batch.rowCount)
            try rows.forEachRow { columns throws(PostgresError) in
                let place = try columns.next(Int.self) - 1
                let headBefore = try columns.next(Int64.self)
                stored[place] = try Appended(
                    channelID: columns.next(), oplogID: columns.next(), isDuplicate: columns.next(),
                    headBefore: OplogID(headBefore), headAfter: OplogID(headBefore + batch.drawn(by: place)),
                    validUntil: columns.next(), createdAt: columns.next(), isPersistent: columns.next(),
                    rules: ChannelRules(isSingleDevice: columns.next(), checksSession: columns.next()),
                    isImmediate: columns.next(), awaitsOutcome: columns.next(), databaseTime: columns.next())
            }
            return batch.sources.map { source in
                var answer = stored[source.row]
                if source.isRepeat { answer?.isDuplicate = true }
                return answer
            }
        }
    }
}
