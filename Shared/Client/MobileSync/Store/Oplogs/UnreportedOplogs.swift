import DeviceProtocol
import GRDB
import SwiftProtobuf
import SyncModel

/// The oplogs of a local store whose confirmation, resend or dead letter the gateway has not recorded. Not thread-safe.
struct UnreportedOplogs {
    let file: LocalStoreFile
    let channels: LocalChannels

    /// Returns one report of the facts that the gateway has not recorded, for device channels and this user's channels.
    ///
    /// An oplog that was confirmed after a resend appears in both lists, so that its resends are counted.
    func report(ofUser userID: String?, bindNumber: UInt32) throws(SyncError) -> OplogReport {
        var report = OplogReport()
        var confirmed: [Int64: [Int64]] = [:]
        try file.access("reading a report") { db in
            let rows = try Row.fetchCursor(
                db.cachedStatement(
                    sql: """
                        SELECT channel_id, oplog_id, state, hand_outs, repeats
                        FROM oplog JOIN channel ON channel.id = channel_id
                        WHERE needs_report AND user_id IN ('', ?) ORDER BY channel_id, oplog_id LIMIT ?
                        """), arguments: [userID ?? "", OplogReport.longest])
            var left = OplogReport.longest
            while let row = try rows.next() {
                guard let channel = channels.channel(row: row[0]) else { continue }
                let state = OplogState(rawValue: row[2])
                let isResent = row[4] as Int > 0 || state == .dead
                left -= (state == .confirmed ? 1 : 0) + (isResent ? 1 : 0)
                guard left >= 0 else { break }
                if state == .confirmed { confirmed[channel.row, default: []].append(row[1]) }
                guard isResent else { continue }
                report.resent.append(
                    .with {
                        $0.kind = channel.key.kind.wire
                        $0.bizType = channel.key.bizType
                        $0.bindNumber = channel.key.kind.needsUser ? bindNumber : 0
                        $0.oplogID = row[1]
                        $0.attempts = UInt32(clamping: row[3] as Int64)
                        $0.dead = state == .dead
                    })
            }
        }
        report.confirmed = confirmed.keys.sorted().compactMap { row in
            channels.channel(row: row).map { channel in
                .with {
                    $0.kind = channel.key.kind.wire
                    $0.bizType = channel.key.bizType
                    $0.bindNumber = channel.key.kind.needsUser ? bindNumber : 0
                    $0.oplogIds = confirmed[row] ?? []
                }
            }
        }
        return report
    }

    /// Marks a report as recorded by the gateway. Changes since then are reported again.
    func recorded(_ report: OplogReport, ofUser userID: String?) throws(SyncError) {
        try file.change("marking a report as recorded") { db in
            let resent = try db.cachedStatement(
                sql: """
                    UPDATE oplog SET needs_report = 0 WHERE channel_id = ? AND oplog_id = ? AND hand_outs = ?
                    AND (state = \(OplogState.dead.rawValue)) = ? AND state <> \(OplogState.confirmed.rawValue)
                    """)
            for item in report.resent {
                guard let channel = channels.channel(kind: item.kind, bizType: item.bizType, userID: userID) else {
                    continue
                }
                try resent.execute(arguments: [channel.row, item.oplogID, item.attempts, item.dead])
            }
            let confirmed = try db.cachedStatement(
                sql: "UPDATE oplog SET needs_report = 0 WHERE channel_id = ? AND oplog_id = ? AND state = ?")
            for item in report.confirmed {
                guard let channel = channels.channel(kind: item.kind, bizType: item.bizType, userID: userID) else {
                    continue
                }
                for id in item.oplogIds {
                    try confirmed.execute(arguments: [channel.row, id, OplogState.confirmed.rawValue])
                }
            }
        }
    }
}
