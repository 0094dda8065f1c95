import PostgreSQL
package import SyncModel

/// Staged roll-outs of global pushes. Functions of the database change them, each with its operation record, and make a
/// stage's oplog in the same transaction.
package enum RolloutStore {
    /// Starts a roll-out with its first stage; runs on an operator's connection, like the other changes.
    ///
    /// - Parameter oplog: what every stage carries; its validity 0 means as long as the instance keeps it.
    package static func start(
        _ plan: RolloutPlan, of instanceID: InstanceID, _ bizType: BizType, _ oplog: Oplog, by actor: OperationActor
    ) -> Query<RolloutOutcome> {
        let ids = (1...plan.stages.count).map { plan.stageID($0).text }
        return outcome(
            """
            SELECT start_rollout($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
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
    package static func widen(_ name: Rollout.Name, to stage: Int, by actor: OperationActor) -> Query<RolloutOutcome> {
        change("widen", name, stage, by: actor)
    }

    /// No further stage comes until it is resumed.
    package static func pause(_ name: Rollout.Name, by actor: OperationActor) -> Query<RolloutOutcome> {
        change("pause", name, 0, by: actor)
    }

    /// Goes on, with the wait that was left.
    package static func resume(_ name: Rollout.Name, by actor: OperationActor) -> Query<RolloutOutcome> {
        change("resume", name, 0, by: actor)
    }

    private static func change(
        _ way: String, _ name: Rollout.Name, _ stage: Int, by actor: OperationActor
    ) -> Query<RolloutOutcome> {
        outcome(
            "SELECT change_rollout($1, $2, $3, $4, $5, $6)",
            [
                actor.value, .text(way), .text(name.instanceID.text), .text(name.bizType.text), .text(name.id.text),
                .int32(Int32(clamping: stage)),
            ])
    }

    private static func outcome(_ sql: String, _ parameters: [PostgresValue]) -> Query<RolloutOutcome> {
        Query(PostgresStatement(sql, parameters)) { rows in
            rows.first.flatMap { RolloutOutcome(rawValue: $0.text(0)) } ?? .missing
        }
    }

    /// Ends it for good; the recalls of its stages are for gateways to know, also when it is repeated.
    package static func stop(
        _ name: Rollout.Name, by actor: OperationActor
    ) -> Query<(outcome: RolloutOutcome, recalls: [OplogStore.Recalled])> {
        let sql = "SELECT outcome, \(OplogStore.recalledColumns) FROM stop_rollout($1, $2, $3, $4)"
        let parameters: [PostgresValue] = [
            actor.value, .text(name.instanceID.text), .text(name.bizType.text), .text(name.id.text),
        ]
        return Query(PostgresStatement(sql, parameters)) { rows in
            let outcome = rows.first.flatMap { RolloutOutcome(rawValue: $0.text(0)) } ?? .missing
            return (outcome, rows.filter { !$0.isNull(1) }.map { OplogStore.recalled(of: $0, from: 1) })
        }
    }

    // MARK: What there is

    private static func list(_ condition: String, _ parameters: [PostgresValue]) -> Query<[Rollout]> {
        let sql = """
            SELECT r.instance_id, r.biz_type, r.third_message_id, r.state,
                coalesce(extract(epoch FROM r.stage_interval)::bigint, 0), \(milliseconds("r.due_at")),
                coalesce(floor(extract(epoch FROM r.wait_left) * 1000)::bigint, -1), r.started_by,
                \(milliseconds("r.started_at")), r.changed_by, \(milliseconds("r.changed_at")), s.share, s.stage_id,
                coalesce(s.oplog_id, 0), s.ordinal
            FROM (SELECT * FROM rollout \(condition)) r
            CROSS JOIN LATERAL unnest(r.stages, r.stage_ids, r.oplog_ids)
                WITH ORDINALITY AS s (share, stage_id, oplog_id, ordinal)
            ORDER BY r.started_at DESC, r.biz_type, r.third_message_id, s.ordinal
            """
        return Query(PostgresStatement(sql, parameters)) { rows in
            var rollouts: [Rollout] = []
            for row in rows {
                if row.int64(14) == 1 { rollouts.append(rollout(row)) }
                rollouts[rollouts.count - 1].stages.append(
                    Rollout.Stage(
                        share: Int(row.int32(11)), id: ThirdMessageID(row.text(12)),
                        oplogID: row.int64(13) == 0 ? nil : OplogID(row.int64(13))))
            }
            return rollouts
        }
    }

    private static func milliseconds(_ column: String) -> String {
        "coalesce(floor(extract(epoch FROM \(column)) * 1000)::bigint, 0)"
    }

    private static func rollout(_ row: PostgresRow) -> Rollout {
        var rollout = Rollout(
            name: Rollout.Name(
                instanceID: InstanceID(row.text(0)), bizType: BizType(row.text(1)), id: ThirdMessageID(row.text(2))),
            state: RolloutState(rawValue: row.int16(3)) ?? .stopped)
        rollout.interval = row.int64(4) == 0 ? nil : .seconds(row.int64(4))
        rollout.dueAt = row.int64(5) == 0 ? nil : WallTime(milliseconds: row.int64(5))
        rollout.waitLeft = row.int64(6) < 0 ? nil : .milliseconds(row.int64(6))
        rollout.startedBy = row.text(7)
        rollout.startedAt = WallTime(milliseconds: row.int64(8))
        rollout.changedBy = row.text(9)
        rollout.changedAt = WallTime(milliseconds: row.int64(10))
        return rollout
    }

    /// The newest of an instance.
    package static func rollouts(of instanceID: InstanceID, limit: Int) -> Query<[Rollout]> {
        list(
            "WHERE instance_id = $1 ORDER BY started_at DESC LIMIT $2",
            [.text(instanceID.text), .int32(Int32(clamping: limit))])
    }

    /// One; nil: there is none.
    package static func rollout(_ name: Rollout.Name) -> Query<Rollout?> {
        let list = list(
            "WHERE instance_id = $1 AND biz_type = $2 AND third_message_id = $3",
            [.text(name.instanceID.text), .text(name.bizType.text), .text(name.id.text)])
        return Query(list.statement) { list.decode($0).first }
    }

    /// Devices of one stage that are counted at the most.
    package static let figuresMax = 100_000

    /// What is on record of the stages of a roll-out; it counts the devices one by one, up to `figuresMax`.
    package struct Figures: Sendable {
        package var handedOut: Int64
        package var confirmed: Int64
    }

    /// By stage's oplog; those of which nothing is on record are left out.
    package static func figures(of rollout: Rollout) -> Query<[OplogID: Figures]> {
        let sql = """
            SELECT s.oplog_id, f.handed_out, f.confirmed
            FROM sync_configuration b
            JOIN channel c ON c.instance_id = b.instance_id AND c.kind = b.kind % 2 + 2 AND c.target = ''
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
        return Query(PostgresStatement(sql, parameters)) { rows in
            var figures: [OplogID: Figures] = [:]
            for row in rows {
                figures[OplogID(row.int64(0))] = Figures(handedOut: row.int64(1), confirmed: row.int64(2))
            }
            return figures
        }
    }

    // MARK: By time

    /// Makes one stage whose time has come, as the writer; false: there is none.
    package static let widenDue = Query(PostgresStatement("SELECT widen_due_rollout()")) { rows in
        rows.first?.bool(0) ?? false
    }

    /// Forgets what ended long ago.
    package static let forgetEnded = Query(PostgresStatement("SELECT forget_ended_rollouts()")) { _ in () }

    /// A stage that was made and that gateways have not been told of.
    package struct Untold: Sendable {
        package var name: Rollout.Name
        /// 1 for the first.
        package var stage: Int
        package var address: ChannelAddress
        package var channelID: Int64
        /// The configuration sends global pushes at once.
        package var isImmediate: Bool
        package var oplog: Oplog
        /// Recalled already: there is nothing to give out.
        package var isRecalled: Bool
    }

    /// The next untold stage of each roll-out, at most so many.
    package static func untold(limit: Int) -> Query<[Untold]> {
        let sql = """
            SELECT r.instance_id, r.biz_type, r.third_message_id, r.told_stages + 1, r.kind, c.channel_id, f.is_immediate,
                o.recalled_at IS NOT NULL, o.oplog_id, o.third_message_id, coalesce(o.payload, ''), o.is_binary,
                \(OplogStore.targetingColumns), floor(extract(epoch FROM o.valid_until) * 1000)::bigint,
                floor(extract(epoch FROM o.created_at) * 1000)::bigint, o.recalls, coalesce(o.attributes, '')
            FROM rollout r
            JOIN sync_configuration f ON f.instance_id = r.instance_id AND f.biz_type = r.biz_type
            JOIN channel c ON c.instance_id = r.instance_id AND c.kind = r.kind AND c.target = ''
                AND c.biz_type = r.biz_type
            JOIN oplog o ON o.channel_id = c.channel_id AND o.oplog_id = r.oplog_ids[r.told_stages + 1]
            WHERE r.told_stages < cardinality(r.oplog_ids)
            ORDER BY r.changed_at LIMIT $1
            """
        return Query(PostgresStatement(sql, [.int32(Int32(clamping: limit))])) { rows in
            rows.compactMap { row in
                guard let kind = ChannelKind(rawValue: row.int16(4)) else { return nil }
                let name = Rollout.Name(
                    instanceID: InstanceID(row.text(0)), bizType: BizType(row.text(1)),
                    id: ThirdMessageID(row.text(2)))
                let target = TargetAddress(instanceID: name.instanceID, kind: kind, target: "")
                return Untold(
                    name: name, stage: Int(row.int32(3)),
                    address: ChannelAddress(target: target, bizType: name.bizType), channelID: row.int64(5),
                    isImmediate: row.bool(6), oplog: OplogStore.oplog(of: row, from: 8), isRecalled: row.bool(7))
            }
        }
    }

    /// Gateways know of a stage and those before it.
    package static func told(_ name: Rollout.Name, stage: Int) -> Query<Void> {
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
