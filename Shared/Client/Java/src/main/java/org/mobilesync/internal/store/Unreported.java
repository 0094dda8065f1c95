package org.mobilesync.internal.store;

import java.util.LinkedHashMap;
import java.util.Map;
import org.mobilesync.database.SyncDatabase;
import org.mobilesync.internal.ChannelKinds;
import org.mobilesync.internal.connection.OplogReport;
import org.mobilesync.internal.wire.ConfirmedOplogs;
import org.mobilesync.internal.wire.ResentOplog;

/** The oplogs whose confirmation, resend or dead letter the gateway has not recorded. */
public final class Unreported {
    private final StoreFile file;
    private final SyncDatabase database;
    private final Channels channels;

    Unreported(StoreFile file, Channels channels) {
        this.file = file;
        this.database = file.database();
        this.channels = channels;
    }

    /**
     * Returns one report of the facts that the gateway has not recorded, for device channels and this user's channels.
     * An oplog that was confirmed after a resend appears in both lists, so that its resends are counted.
     */
    public OplogReport report(String userId, long bindNumber) {
        OplogReport report = new OplogReport();
        Map<Long, ConfirmedOplogs> confirmed = new LinkedHashMap<>();
        int[] left = {OplogReport.LONGEST};
        file.access("reading a report", () -> database.query(row -> {
            Channel channel = channels.byRow(row.getLong(0));
            int state = (int) row.getLong(2);
            boolean isConfirmed = state == OplogState.CONFIRMED;
            boolean isResent = row.getLong(4) > 0 || state == OplogState.DEAD;
            left[0] -= (isConfirmed ? 1 : 0) + (isResent ? 1 : 0);
            if (left[0] < 0 || channel == null) return null;
            long bind = ChannelKinds.needsUser(channel.key.kind) ? bindNumber : 0;
            if (isConfirmed) {
                ConfirmedOplogs oplogs = confirmed.get(channel.row);
                if (oplogs == null) {
                    oplogs = new ConfirmedOplogs();
                    oplogs.kind = channel.key.kind;
                    oplogs.bizType = channel.key.bizType;
                    oplogs.bindNumber = bind;
                    confirmed.put(channel.row, oplogs);
                }
                oplogs.oplogIds.add(row.getLong(1));
            }
            if (isResent) report.resent.add(resent(channel, bind, row.getLong(1), row.getLong(3), state));
            return null;
        }, "SELECT channel_id, oplog_id, state, hand_outs, repeats FROM oplog JOIN channel ON channel.id = channel_id"
            + " WHERE needs_report AND user_id IN ('', ?) ORDER BY channel_id, oplog_id LIMIT ?",
            userId == null ? "" : userId, OplogReport.LONGEST));
        report.confirmed.addAll(confirmed.values());
        return report;
    }

    private static ResentOplog resent(Channel channel, long bind, long oplogId, long attempts, int state) {
        ResentOplog item = new ResentOplog();
        item.kind = channel.key.kind;
        item.bizType = channel.key.bizType;
        item.bindNumber = bind;
        item.oplogId = oplogId;
        item.attempts = attempts;
        item.dead = state == OplogState.DEAD;
        return item;
    }

    /** Marks a report as recorded by the gateway. Changes since then are reported again. */
    public void recorded(OplogReport report, String userId) {
        file.change("marking a report as recorded", () -> {
            for (ResentOplog item : report.resent) {
                Channel channel = channels.find(item.kind, item.bizType, userId);
                if (channel == null) continue;
                database.execute(
                    "UPDATE oplog SET needs_report = 0 WHERE channel_id = ? AND oplog_id = ? AND hand_outs = ?"
                        + " AND (state = ?) = ? AND state <> ?",
                    channel.row, item.oplogId, item.attempts, OplogState.DEAD, item.dead, OplogState.CONFIRMED);
            }
            for (ConfirmedOplogs item : report.confirmed) {
                Channel channel = channels.find(item.kind, item.bizType, userId);
                if (channel == null) continue;
                for (int index = 0; index < item.oplogIds.size(); index++) {
                    database.execute(
                        "UPDATE oplog SET needs_report = 0 WHERE channel_id = ? AND oplog_id = ? AND state = ?",
                        channel.row, item.oplogIds.get(index), OplogState.CONFIRMED);
                }
            }
            return null;
        });
    }
}
