package org.mobilesync.internal.store;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.mobilesync.SyncOplog;
import org.mobilesync.database.DatabaseException;
import org.mobilesync.database.SyncDatabase;
import org.mobilesync.database.SyncRow;
import org.mobilesync.internal.Limits;
import org.mobilesync.internal.wire.Entry;

/** The oplogs of a local store: their arrival, hand-outs and confirmations. */
public final class Oplogs {
    private static final String SHOWN_COLUMNS =
        "oplog_id, payload, is_binary, third_message_id, created_at_ms, recalls, is_replay, hand_outs, repeats,"
            + " conversation";
    /** The condition for oplogs in lists. */
    private static final String LISTED = "recalls = 0 AND NOT is_recalled";

    private final StoreFile file;
    private final SyncDatabase database;
    private final ServiceClock clock;

    Oplogs(StoreFile file, ServiceClock clock) {
        this.file = file;
        this.database = file.database();
        this.clock = clock;
    }

    // Arrival; call these methods in a transaction.

    /** Stores an entry, or applies the rule of its origin when the oplog is already stored. */
    void insert(Entry entry, Channel channel, OplogOrigin origin) throws DatabaseException {
        // The app has seen an oplog that is replayed but no longer stored, because the store deletes only confirmed
        // ones. It has also seen an oplog of a list.
        boolean wasShown = origin == OplogOrigin.HISTORY || origin == OplogOrigin.AGAIN
            || origin.isReplay() && entry.oplogId <= channel.position;
        byte[] payload = file.cipher().seal(entry.payload, PayloadCipher.oplog(channel.row, entry.oplogId));
        int state = origin == OplogOrigin.HISTORY ? OplogState.HISTORY : OplogState.WAITING;
        long inserted = database.execute(
            "INSERT OR IGNORE INTO oplog (channel_id, oplog_id, payload, is_binary, third_message_id, created_at_ms,"
                + " valid_until_ms, recalls, is_replay, was_shown, state, conversation)"
                + " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            channel.row, entry.oplogId, payload, entry.binary, entry.thirdMessageId, entry.createdAtMs,
            entry.validUntilMs, entry.recalls, origin.isReplay(), wasShown, state, textOrNull(entry.conversation));
        if (inserted > 0 || origin == OplogOrigin.HISTORY) return;
        if (origin == OplogOrigin.REREAD || origin == OplogOrigin.RECOVERY) {
            // A recovery leaves only confirmations that the gateway has not recorded.
            String isKept = origin == OplogOrigin.RECOVERY ? "needs_report" : "1";
            database.execute(
                "UPDATE oplog SET state = ?, hand_outs = 0, repeats = 0, needs_report = 0, is_replay = 1, payload = ?,"
                    + " valid_until_ms = ? WHERE channel_id = ? AND oplog_id = ? AND NOT is_recalled"
                    + " AND NOT (state = ? AND " + isKept + ")",
                OplogState.WAITING, payload, entry.validUntilMs, channel.row, entry.oplogId,
                OplogState.CONFIRMED);
        } else {
            // A re-read may have brought the oplog before, and the app may have confirmed it. A history row was only
            // for lists.
            database.execute("UPDATE oplog SET state = ? WHERE channel_id = ? AND oplog_id = ? AND state = ?",
                OplogState.WAITING, channel.row, entry.oplogId, OplogState.HISTORY);
        }
    }

    /** Stores the numbers of an oplog with results, which counts as confirmed. The client has read its payload. */
    void insertConfirmed(Entry entry, Channel channel) throws DatabaseException {
        entry.payload = new byte[0];
        insert(entry, channel, OplogOrigin.PUSH);
        database.execute(
            "UPDATE oplog SET state = ?, needs_report = 1 WHERE channel_id = ? AND oplog_id = ? AND state <> ?",
            OplogState.CONFIRMED, channel.row, entry.oplogId, OplogState.CONFIRMED);
    }

    /**
     * Deletes the oplog that a tombstone recalls, or hides it when the app has confirmed it.
     *
     * @return whether the entry is for the app; false for a tombstone of an oplog that the app has never seen
     */
    boolean dropRecalled(Entry entry, Channel channel) throws DatabaseException {
        if (entry.recalls == 0) return true;
        database.execute(
            "UPDATE oplog SET is_recalled = 1, payload = x'' WHERE channel_id = ? AND oplog_id = ? AND state = ?",
            channel.row, entry.recalls, OplogState.CONFIRMED);
        List<Boolean> wasShown = database.query(row -> row.getBoolean(0),
            "SELECT was_shown FROM oplog WHERE channel_id = ? AND oplog_id = ? AND state <> ?",
            channel.row, entry.recalls, OplogState.CONFIRMED);
        if (wasShown.isEmpty()) return true;
        database.execute("DELETE FROM oplog WHERE channel_id = ? AND oplog_id = ?", channel.row, entry.recalls);
        return wasShown.get(0);
    }

    /** Deletes the oplogs and read marks of a channel. Confirmations stay until the gateway has recorded them. */
    void deleteAll(Channel channel) throws DatabaseException {
        database.execute("DELETE FROM oplog WHERE channel_id = ? AND NOT (state = ? AND needs_report)",
            channel.row, OplogState.CONFIRMED);
        database.execute("DELETE FROM read_mark WHERE channel_id = ?", channel.row);
    }

    // Hand-outs and confirmations.

    /**
     * Prepares the oplogs after the store was opened: handed-out oplogs that the app did not confirm wait again. An
     * oplog at the limit of hand-outs becomes a dead letter.
     *
     * @return the rows of the channels with waiting oplogs
     */
    public List<Long> startOver() {
        return file.change("preparing hand-outs", () -> {
            database.execute("UPDATE oplog SET state = ?, needs_report = 1 WHERE state = ? AND hand_outs >= ?",
                OplogState.DEAD, OplogState.HANDED_OUT, Limits.HAND_OUTS);
            database.execute(
                "UPDATE oplog SET state = ? WHERE state = ?", OplogState.WAITING, OplogState.HANDED_OUT);
            return database.query(row -> row.getLong(0),
                "SELECT id FROM channel WHERE EXISTS (SELECT 1 FROM oplog WHERE state = ? AND channel_id = channel.id)",
                OplogState.WAITING);
        });
    }

    /** Returns the ids of the first waiting oplogs of a channel, in ascending order. */
    public List<Long> waiting(Channel channel, int limit) {
        return file.access("reading oplogs", () -> database.query(row -> row.getLong(0),
            "SELECT oplog_id FROM oplog WHERE state = ? AND channel_id = ? ORDER BY oplog_id LIMIT ?",
            OplogState.WAITING, channel.row, limit));
    }

    /**
     * Counts a hand-out, then returns the oplog for the app. Returns null when the oplog no longer waits. After an
     * error the oplog waits as before, because the count and the read are one transaction.
     *
     * <p>A resend is flushed to the disk. Other hand-outs are frequent and are not flushed: the count survives the end
     * of the process, and after a power failure the oplog can be handed out once too often.
     *
     * @param isResend whether the app already has the oplog
     */
    public SyncOplog handOut(long oplogId, Channel channel, boolean isResend) {
        return file.access("handing out an oplog", () -> isResend
            ? database.inTransaction(() -> count(oplogId, channel, true))
            : database.withoutFlush(() -> database.inTransaction(() -> count(oplogId, channel, false))));
    }

    private SyncOplog count(long oplogId, Channel channel, boolean isResend) throws DatabaseException {
        if (!isResend && expire(oplogId, channel)) return null;
        long counted = database.execute(
            "UPDATE oplog SET state = ?, was_shown = 1, hand_outs = hand_outs + 1, repeats = repeats + ?,"
                + " needs_report = max(needs_report, ?) WHERE channel_id = ? AND oplog_id = ? AND state = ?",
            OplogState.HANDED_OUT, isResend, isResend, channel.row, oplogId,
            isResend ? OplogState.HANDED_OUT : OplogState.WAITING);
        if (counted == 0) return null;
        return database.query(row -> oplog(row, channel),
            "SELECT " + SHOWN_COLUMNS + " FROM oplog WHERE channel_id = ? AND oplog_id = ?", channel.row, oplogId)
            .get(0);
    }

    /** Leaves an expired oplog that the app never received to the history (K2, D11). */
    private boolean expire(long oplogId, Channel channel) throws DatabaseException {
        // The device's own clock can be wrong by years.
        Long now = clock.serviceTimeMs();
        if (now == null) return false;
        return database.execute(
            "UPDATE oplog SET state = ? WHERE channel_id = ? AND oplog_id = ? AND state = ? AND hand_outs = 0"
                + " AND valid_until_ms BETWEEN 1 AND ?",
            OplogState.HISTORY, channel.row, oplogId, OplogState.WAITING, now) > 0;
    }

    private SyncOplog oplog(SyncRow row, Channel channel) {
        SyncOplog.Builder oplog = new SyncOplog.Builder();
        oplog.bizType = channel.key.bizType;
        oplog.userId = channel.userId();
        oplog.channelRow = channel.row;
        oplog.oplogId = row.getLong(0);
        oplog.payload = file.cipher().open(row.getBytes(1), PayloadCipher.oplog(channel.row, oplog.oplogId));
        oplog.isBinary = row.getBoolean(2);
        oplog.thirdMessageId = textOrNull(row.getText(3));
        oplog.createdAtMs = row.getLong(4);
        oplog.recalls = row.getLong(5);
        oplog.isReplay = row.getBoolean(6);
        oplog.handOuts = (int) row.getLong(7);
        oplog.repeats = (int) Math.min(row.getLong(8), Limits.RESENDS);
        oplog.conversation = row.isNull(9) ? null : row.getText(9);
        return oplog.build();
    }

    /** Records durably that the app has processed oplogs. Unknown and confirmed oplogs are ignored. */
    public void confirm(List<SyncOplog> oplogs) {
        file.change("confirming oplogs", () -> {
            for (SyncOplog oplog : oplogs) {
                database.execute(
                    "UPDATE oplog SET state = ?, needs_report = 1 WHERE channel_id = ? AND oplog_id = ?"
                        + " AND state NOT IN (?, ?)",
                    OplogState.CONFIRMED, oplog.channelRow(), oplog.oplogId(), OplogState.CONFIRMED,
                    OplogState.HISTORY);
            }
            return null;
        });
    }

    /** Lets oplogs wait again that were handed out and did not reach the app. */
    public void putBack(List<SyncOplog> oplogs) {
        file.change("putting oplogs back", () -> {
            for (SyncOplog oplog : oplogs) {
                database.execute(
                    "UPDATE oplog SET state = ?, hand_outs = hand_outs - 1 WHERE channel_id = ? AND oplog_id = ?"
                        + " AND state = ? AND hand_outs = ?",
                    OplogState.WAITING, oplog.channelRow(), oplog.oplogId(), OplogState.HANDED_OUT, oplog.attempt());
            }
            return null;
        });
    }

    /** Records durably that oplogs are dead letters. An oplog that the app has confirmed meanwhile stays confirmed. */
    public void markDead(List<HandedOut> oplogs) {
        file.change("storing dead letters", () -> {
            for (HandedOut oplog : oplogs) {
                database.execute(
                    "UPDATE oplog SET state = ?, needs_report = 1 WHERE channel_id = ? AND oplog_id = ? AND state = ?",
                    OplogState.DEAD, oplog.channelRow(), oplog.oplogId(), OplogState.HANDED_OUT);
            }
            return null;
        });
    }

    // Lists.

    /**
     * Returns the newest oplogs below an id, confirmed or not, without recalled oplogs and tombstones.
     *
     * @param conversation only oplogs of this one; null: all
     */
    List<SyncOplog> newest(Channel channel, String conversation, long before, int limit) {
        List<Object> values = new ArrayList<>(Arrays.<Object>asList(channel.row, before));
        if (conversation != null) values.add(conversation);
        values.add(limit);
        // Without the name of the index, SQLite reads the whole channel by its primary key.
        String index = conversation == null ? "" : " INDEXED BY oplog_conversation";
        String condition = conversation == null ? "" : " AND conversation = ?";
        return file.access("reading history", () -> database.query(row -> oplog(row, channel),
            "SELECT " + SHOWN_COLUMNS + " FROM oplog" + index + " WHERE channel_id = ? AND oplog_id < ?" + condition
                + " AND " + LISTED + " ORDER BY oplog_id DESC LIMIT ?", values.toArray()));
    }

    /** Returns the conversations that have such oplogs, each with the count of those above its read mark. */
    Map<String, Integer> unread(Channel channel) {
        Map<String, Integer> unread = new HashMap<>();
        file.access("reading conversations", () -> database.query(
            row -> unread.put(row.getText(0), (int) row.getLong(1)),
            "SELECT conversation, sum(oplog_id > coalesce(upto, 0)) FROM oplog"
                + " LEFT JOIN read_mark USING (channel_id, conversation)"
                + " WHERE channel_id = ? AND conversation IS NOT NULL AND " + LISTED + " GROUP BY conversation",
            channel.row));
        return unread;
    }

    /** Returns the count of oplogs that the app has not confirmed, without dead letters. */
    int unconfirmed(Channel channel) {
        return file.access("counting oplogs", () -> database.query(row -> (int) row.getLong(0),
            "SELECT count(*) FROM oplog WHERE channel_id = ? AND state IN (?, ?)",
            channel.row, OplogState.WAITING, OplogState.HANDED_OUT).get(0));
    }

    /** Returns the oplogs of a page of history for the app. */
    static List<SyncOplog> ofPage(List<Entry> entries, Channel channel) {
        List<SyncOplog> oplogs = new ArrayList<>();
        for (Entry entry : entries) oplogs.add(ofEntry(entry, channel));
        return oplogs;
    }

    /** Returns the oplog of an entry that a list shows. */
    static SyncOplog ofEntry(Entry entry, Channel channel) {
        SyncOplog.Builder oplog = new SyncOplog.Builder();
        oplog.bizType = channel.key.bizType;
        oplog.userId = channel.userId();
        oplog.channelRow = channel.row;
        oplog.oplogId = entry.oplogId;
        oplog.payload = entry.payload;
        oplog.isBinary = entry.binary;
        oplog.thirdMessageId = textOrNull(entry.thirdMessageId);
        oplog.conversation = textOrNull(entry.conversation);
        oplog.createdAtMs = entry.createdAtMs;
        return oplog.build();
    }

    private static String textOrNull(String text) {
        return text.isEmpty() ? null : text;
    }
}
