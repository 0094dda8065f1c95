import PostgreSQL
package import SyncModel

/// Roll-outs of global pushes. Functions of the database change them, each with its audit record, and make a stage's
/// oplog in the same transaction.
package enum RolloutStore {
    /// Starts a roll-out with its first stage; it needs an operator's connection, like the other changes.
    ///
    /// - Parameters:
    ///   - oplog: the content of every stage; a validity of 0 means the instance's retention.
    ///   - store: the store with the instance's global channels, as in every change here.
    package static func start(
        _ plan: RolloutPlan, of instanceID: InstanceID, _ bizType: BizType, _ oplog: Oplog, by actor: OperationActor,
        in store: StoreSchema = .every
    ) -> Query<RolloutOutcome> {
        let ids = (1...plan.stages.count).map { plan.stageID($0).text }
        return outcome(
            """
            SELECT \(store.prefix)start_rollout($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
            """,
            [
                actor.value, .text(instanceID.text), .text(bizType.text), .text(plan.id.text), .bytes(oplog.payload),
                .bool(oplog.isBinary), .int16(oplog.targeting.operatingSystem?.rawValue ?? 0),
                .text(oplog.targeting.minimumVersion ?? ""), .text(oplog.targeting.maximumVersion ?? ""),
                .int64(oplog.validUntil.milliseconds), .int16(Int16(plan.start)),
                .int64Array(plan.stages.map { Int64($0) }), .textArray(ids),
                .int64Array(ids.map(OplogStore.stableHash)), .int64(plan.interval?.components.seconds ?? 0),
            ])
    }

    /// Makes the stage of this number, 1 for the first; one that was made is not made again.
    package static func widen(
        _ name: Rollout.Name, to stage: Int, by actor: OperationActor, in store: StoreSchema = .every
    ) -> Query<RolloutOutcome> {
        change("widen", name, stage, by: actor, in: store)
    }

    /// Pauses a roll-out: no further stage is made until it is resumed.
    package static func pause(
        _ name: Rollout.Name, by actor: OperationActor, in store: StoreSchema = .every
    ) -> Query<RolloutOutcome> {
        change("pause", name, 0, by: actor, in: store)
    }

    /// Resumes a roll-out, with the remaining wait.
    package static func resume(
        _ name: Rollout.Name, by actor: OperationActor, in store: StoreSchema = .every
    ) -> Query<RolloutOutcome> {
        change("resume", name, 0, by: actor, in: store)
    }

    private static func change(
        _ way: String, _ name: Rollout.Name, _ stage: Int, by actor: OperationActor, in store: StoreSchema
    ) -> Query<RolloutOutcome> {
        outcome(
            "SELECT \(store.prefix)change_rollout($1, $2, $3, $4, $5, $6)",
            [
                actor.value, .text(way), .text(name.instanceID.text), .text(name.bizType.text), .text(name.id.text),
                .int32(Int32(clamping: stage)),
            ])
    }

    private static func outcome(_ sql: String, _ parameters: [PostgresValue]) -> Query<RolloutOutcome> {
        Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            try rows.first(String.self).flatMap(RolloutOutcome.init) ?? .missing
        }
    }

    /// Stops a roll-out for good. Returns the recalls of its stages, which gateways must receive, also for a repeat.
    package static func stop(
        _ name: Rollout.Name, by actor: OperationActor, in store: StoreSchema = .every
    ) -> Query<(outcome: RolloutOutcome, recalls: [OplogStore.Recalled])> {
        let sql = "SELECT outcome, \(OplogStore.recalledColumns) FROM \(store.prefix)stop_rollout($1, $2, $3, $4)"
        let parameters: [PostgresValue] = [
            actor.value, .text(name.instanceID.text), .text(name.bizType.text), .text(name.id.text),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            var outcome = RolloutOutcome.missing
            // Every row has the outcome, and the first one has no recall.
            let recalls = try rows.compactDecode { columns throws(PostgresError) -> OplogStore.Recalled? in
                outcome = RolloutOutcome(rawValue: try columns.next()) ?? .missing
                return columns.isNextNull ? nil : try OplogStore.recalled(&columns)
            }
            return (outcome, recalls)
        }
    }

    // MARK: Queries

    private static func list(_ condition: String, _ parameters: [PostgresValue]) -> Query<[Rollout]> {
        let sql = """
            SELECT s.ordinal, r.instance_id, r.biz_type, r.third_message_id, r.state,
                extract(epoch FROM r.stage_interval)::bigint, \(milliseconds("r.due_at")),
                floor(extract(epoch FROM r.wait_left) * 1000)::bigint, r.started_by, \(milliseconds("r.started_at")),
                r.changed_by, \(milliseconds("r.changed_at")), s.share, s.stage_id, s.oplog_id
            FROM (SELECT * FROM rollout \(condition)) r
            CROSS JOIN LATERAL unnest(r.stages, r.stage_ids, r.oplog_ids)
                WITH ORDINALITY AS s (share, stage_id, oplog_id, ordinal)
            ORDER BY r.started_at DESC, r.biz_type, r.third_message_id, s.ordinal
            """
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            var rollouts: [Rollout] = []
            try rows.forEachRow { columns throws(PostgresError) in
                let isFirst = try columns.next(Int.self) == 1
                let rollout = try rollout(&columns)
                if isFirst { rollouts.append(rollout) }
                rollouts[rollouts.count - 1].stages.append(
                    try Rollout.Stage(share: columns.next(), id: columns.next(), oplogID: columns.next()))
            }
            return rollouts
        }
    }

    private static func milliseconds(_ column: String) -> String {
        "floor(extract(epoch FROM \(column)) * 1000)::bigint"
    }

    private static func rollout(_ columns: inout PostgresColumns) throws(PostgresError) -> Rollout {
        var rollout = try Rollout(name: name(&columns), state: RolloutState(rawValue: columns.next()) ?? .stopped)
        rollout.interval = try columns.next(Int64?.self).map { .seconds($0) }
        rollout.dueAt = try columns.next()
        rollout.waitLeft = try columns.next(Int64?.self).map { .milliseconds($0) }
        rollout.startedBy = try columns.next()
        rollout.startedAt = try columns.next()
        rollout.changedBy = try columns.next()
        rollout.changedAt = try columns.next()
        return rollout
    }

    private static func name(_ columns: inout PostgresColumns) throws(PostgresError) -> Rollout.Name {
        try Rollout.Name(instanceID: columns.next(), bizType: columns.next(), id: columns.next())
    }

    /// The newest roll-outs of an instance.
    package static func rollouts(of instanceID: InstanceID, limit: Int) -> Query<[Rollout]> {
        list(
            "WHERE instance_id = $1 ORDER BY started_at DESC LIMIT $2",
            [.text(instanceID.text), .int32(Int32(clamping: limit))])
    }

    /// One roll-out; nil: there is none.
    package static func rollout(_ name: Rollout.Name) -> Query<Rollout?> {
        let list = list(
            "WHERE instance_id = $1 AND biz_type = $2 AND third_message_id = $3",
            [.text(name.instanceID.text), .text(name.bizType.text), .text(name.id.text)])
        return Query(list.statement) { rows throws(PostgresError) in try list.decode(rows).first }
    }

    /// The largest number of devices of one stage that are counted.
    package static let figuresMax = 100_000

    /// The figures of a stage; devices are counted one by one, up to `figuresMax`.
    package struct Figures: Sendable {
        package var handedOut: Int64
        package var confirmed: Int64
    }

    /// The figures by the stage's oplog; stages without a record are left out.
    package static func figures(of rollout: Rollout) -> Query<[OplogID: Figures]> {
        let sql = """
            SELECT s.oplog_id, f.handed_out, f.confirmed
            FROM sync_configuration b
            JOIN channel c ON c.instance_id = b.instance_id AND c.kind = b.kind % 2 + 2 /* global */ AND c.target = ''
                AND c.biz_type = b.biz_type
            CROSS JOIN unnest($3::bigint[]) AS s (oplog_id)
            CROSS JOIN LATERAL (
                SELECT count(l.handed_out_at) AS handed_out, count(l.confirmed_at) AS confirmed FROM (
                    SELECT d.handed_out_at, d.confirmed_at FROM statistics_delivery d
                    WHERE d.channel_id = c.channel_id AND d.oplog_id = s.oplog_id LIMIT \(figuresMax)
                ) l
            ) f
            WHERE b.instance_id = $1 AND b.biz_type = $2
            """
        let parameters: [PostgresValue] = [
            .text(rollout.name.instanceID.text), .text(rollout.name.bizType.text),
            .int64Array(rollout.stages.compactMap(\.oplogID?.value)),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows throws(PostgresError) in
            var figures: [OplogID: Figures] = [:]
            try rows.forEachRow { columns throws(PostgresError) in
                let id = try columns.next(OplogID.self)
                figures[id] = try Figures(handedOut: columns.next(), confirmed: columns.next())
            }
            return figures
        }
    }

    // MARK: Time

    /// Makes one stage whose time has come, as the writer; false: none is due in this store.
    package static func widenDue(in store: StoreSchema = .every) -> Query<Bool> {
        Query(PostgresStatement("SELECT \(store.prefix)widen_due_rollout()")) { rows throws(PostgresError) in
            try rows.first(Bool.self) ?? false
        }
    }

    /// Stops roll-outs whose validity has ended, and deletes those that ended long ago, of all instances.
    package static func forgetEnded(in stores: StoreLayout = .single) -> Query<Void> {
        Query(PostgresStatement("SELECT \(stores.store(ofID: 0).prefix)forget_ended_rollouts()")) { _ in () }
    }

    /// A stage that was made and not announced to gateways yet.
    package struct UnannouncedStage: Sendable {
        package var name: Rollout.Name
        /// 1 for the first.
        package var stage: Int
        package var address: ChannelAddress
        package var channelID: Int64
        /// The configuration sends global pushes at once.
        package var isImmediate: Bool
        package var oplog: Oplog
        /// The stage was recalled already: there is nothing to send.
        package var isRecalled: Bool
    }

    /// The next unannounced stage of each roll-out, at most `limit`.
    package static func unannounced(limit: Int) -> Query<[UnannouncedStage]> {
        let sql = """
            SELECT r.kind, r.instance_id, r.biz_type, r.third_message_id, r.told_stages + 1, c.channel_id,
                f.is_immediate, \(OplogStore.columns), o.recalled_at IS NOT NULL
            FROM rollout r
            JOIN sync_configuration f ON f.instance_id = r.instance_id AND f.biz_type = r.biz_type
            JOIN channel c ON c.instance_id = r.instance_id AND c.kind = r.kind AND c.target = ''
                AND c.biz_type = r.biz_type
            JOIN oplog o ON o.channel_id = c.channel_id AND o.oplog_id = r.oplog_ids[r.told_stages + 1]
            WHERE r.told_stages < cardinality(r.oplog_ids)
            ORDER BY r.changed_at LIMIT $1
            """
        return Query(PostgresStatement(sql, [.int32(Int32(clamping: limit))])) { rows throws(PostgresError) in
            try rows.compactDecode { columns throws(PostgresError) -> UnannouncedStage? in
                guard let kind = ChannelKind(rawValue: try columns.next()) else { return nil }
                let name = try name(&columns)
                let target = TargetAddress(instanceID: name.instanceID, kind: kind, target: "")
                return try UnannouncedStage(
                    name: name, stage: columns.next(), address: ChannelAddress(target: target, bizType: name.bizType),
                    channelID: columns.next(), isImmediate: columns.next(), oplog: OplogStore.oplog(&columns),
                    isRecalled: columns.next())
            }
        }
    }

    /// Records that gateways know this stage and those before it.
    package static func markAnnounced(_ name: Rollout.Name, stage: Int) -> Query<Void> {
        let sql = """
            UPDATE rollout SET told_stages = greatest(told_stages, $4)
            WHERE instance_id = $1 AND biz_type = $2 AND third_message_id = $3
            """
        let parameters: [PostgresValue] = [
            .text(name.instanceID.text), .text(name.bizType.text), .text(name.id.text), .int32(Int32(clamping: stage)),
        ]
        return Query(PostgresStatement(sql, parameters)) { _ in }
    }
}
