package org.mobilesync.internal.store;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.mobilesync.SyncChannelSummary;
import org.mobilesync.SyncConversation;
import org.mobilesync.SyncOplog;
import org.mobilesync.internal.ChannelKinds;
import org.mobilesync.internal.wire.ChannelSummary;
import org.mobilesync.internal.wire.Entry;
import org.mobilesync.internal.wire.HistoryPage;

/** The local part of histories, summaries and conversations, and their merge with the pages of the server. */
public final class HistoryStore {
    /** {@link LocalPart#requestBefore()} when the server has nothing older. */
    public static final long NOTHING_OLDER = -1;

    private final StoreFile file;
    private final Channels channels;
    private final Oplogs oplogs;
    private final StoreSpace space;

    HistoryStore(StoreFile file, Channels channels, Oplogs oplogs, StoreSpace space) {
        this.file = file;
        this.channels = channels;
        this.oplogs = oplogs;
        this.space = space;
    }

    /** The local part of a channel's history, and the place where the server must continue. */
    public static final class LocalPart {
        private final List<SyncOplog> complete;
        private final List<SyncOplog> allStored;
        private final long requestBefore;

        private LocalPart(List<SyncOplog> complete, List<SyncOplog> allStored, long requestBefore) {
            this.complete = complete;
            this.allStored = allStored;
            this.requestBefore = requestBefore;
        }

        /** Returns the newest oplogs up to the first gap. */
        public List<SyncOplog> complete() {
            return complete;
        }

        /** Returns all stored oplogs, possibly with gaps; for the time without an answer. */
        public List<SyncOplog> allStored() {
            return allStored;
        }

        /** Returns the id below which the server has older oplogs; 0: read from the newest; or NOTHING_OLDER. */
        public long requestBefore() {
            return requestBefore;
        }
    }

    /**
     * Returns the stored history of a Sync ID, newest first. The complete range covers all conversations of the
     * channel.
     *
     * @param conversation only oplogs of this one; null: all
     * @param before 0 for the newest
     */
    public LocalPart history(String bizType, String conversation, String userId, long before, int count) {
        Channel channel = channels.current(bizType, userId);
        if (channel == null) {
            return new LocalPart(Collections.<SyncOplog>emptyList(), Collections.<SyncOplog>emptyList(), before);
        }
        List<SyncOplog> all = oplogs.newest(channel, conversation, before == 0 ? Long.MAX_VALUE : before, count);
        // A caller that names an id above the local range shows that oplogs in between can be missing. So does a stored
        // oplog above it, from a page of a conversation.
        boolean isAbove = before > channel.completeUpto + 1
            || !all.isEmpty() && all.get(0).oplogId() > channel.completeUpto;
        List<SyncOplog> complete = new ArrayList<>();
        for (SyncOplog oplog : all) {
            if (!isAbove && oplog.oplogId() > channel.completeFrom) complete.add(oplog);
        }
        boolean isEmpty = channel.completeUpto == 0;
        // The store has every oplog from the first one on.
        boolean isAll = channel.completeFrom == 0 && !isEmpty && !isAbove;
        long bottom = isEmpty || isAbove ? Long.MAX_VALUE : channel.completeFrom + 1;
        long requestBefore = Math.min(before == 0 ? Long.MAX_VALUE : before, bottom);
        return new LocalPart(complete, all,
            isAll ? NOTHING_OLDER : requestBefore == Long.MAX_VALUE ? 0 : requestBefore);
    }

    /**
     * Stores a page that was read newest first, and returns its oplogs. When the store is full, the page is returned
     * but not stored.
     *
     * @param conversation the conversation of the request; null: all. A page of a conversation lacks the other oplogs,
     *     so it does not extend the complete range
     * @param userId the bound user at the time of the request
     * @param before the id of the request; 0 for the newest
     */
    public List<SyncOplog> storePage(
        HistoryPage page, String bizType, String conversation, String userId, long before
    ) {
        if (!ChannelKinds.isKnown(page.kind) || page.head == 0) return Collections.emptyList();
        boolean hasSpace = space.free(StoreSpace.entryBytes(page.entries));
        Channel stored = file.change("storing history", () -> {
            Channel channel = channels.change(ChannelKey.of(page.kind, userId, bizType));
            if (hasSpace) {
                for (Entry entry : page.entries) {
                    oplogs.insert(entry, channel, OplogOrigin.HISTORY);
                }
                if (conversation == null) channel.read(page.more ? page.next - 1 : 0, before, page.head);
                channels.update(channel);
            }
            return channel;
        });
        channels.remember(stored);
        return Oplogs.ofPage(page.entries, stored);
    }

    /** Returns the local state of the channels of the device and this user. */
    public List<SyncChannelSummary> summaries(String userId) {
        List<SyncChannelSummary> summaries = new ArrayList<>();
        for (Channel channel : channels.visible(null, userId)) {
            if (channel.isOfResults()) continue;
            List<SyncOplog> last = oplogs.newest(channel, null, Long.MAX_VALUE, 1);
            summaries.add(new SyncChannelSummary(channel.bizType(), channel.userId(),
                last.isEmpty() ? null : last.get(0), oplogs.unconfirmed(channel), SyncChannelSummary.UNKNOWN));
        }
        return summaries;
    }

    /** Merges the server's summary of a channel with the local one, which can be null. */
    public SyncChannelSummary merged(ChannelSummary channel, String boundUserId, SyncChannelSummary local) {
        String userId = ChannelKinds.needsUser(channel.kind) ? boundUserId : null;
        // The local summary can belong to a previously bound user.
        boolean isSame = local != null && Objects.equals(local.userId(), userId);
        return new SyncChannelSummary(channel.bizType, userId, newer(channel, userId, isSame ? local.last() : null),
            isSame ? local.unconfirmed() : 0, (int) channel.waiting);
    }

    /** Returns the newest oplog of the server, or the local one when it is newer; both can be null. */
    private static SyncOplog newer(ChannelSummary summary, String userId, SyncOplog local) {
        if (summary.last == null || local != null && local.oplogId() >= summary.last.oplogId) return local;
        // No channel has row 0, so a confirmation of this oplog has no effect.
        return Oplogs.ofEntry(summary.last, new Channel(0, ChannelKey.of(summary.kind, userId, summary.bizType)));
    }

    // Conversations.

    /** Returns the conversations of a Sync ID on the device. */
    public List<SyncConversation> conversations(String bizType, String userId) {
        Channel channel = channels.current(bizType, userId);
        if (channel == null) return Collections.emptyList();
        List<SyncConversation> conversations = new ArrayList<>();
        for (Map.Entry<String, Integer> unread : oplogs.unread(channel).entrySet()) {
            SyncOplog last = oplogs.newest(channel, unread.getKey(), Long.MAX_VALUE, 1).get(0);
            conversations.add(new SyncConversation(
                bizType, unread.getKey(), last, unread.getValue(), SyncConversation.UNKNOWN));
        }
        return conversations;
    }

    /**
     * Merges the server's summary of a conversation with the local one, which can be null. Returns null when neither
     * has an oplog.
     */
    public SyncConversation merged(ChannelSummary conversation, String boundUserId, SyncConversation local) {
        String userId = ChannelKinds.needsUser(conversation.kind) ? boundUserId : null;
        boolean isSame = local != null && Objects.equals(local.last().userId(), userId);
        SyncOplog last = newer(conversation, userId, isSame ? local.last() : null);
        return last == null ? null : new SyncConversation(conversation.bizType, conversation.conversation, last,
            isSame ? local.unread() : 0, (int) conversation.waiting);
    }

    /** Raises the read mark of a conversation. An unknown channel has none. */
    public void markRead(String bizType, String conversation, String userId, long upto) {
        Channel channel = channels.current(bizType, userId);
        if (channel == null) return;
        file.change("marking a conversation as read", () -> file.database().execute(
            "INSERT OR REPLACE INTO read_mark VALUES (?, ?, max(?, coalesce("
                + "(SELECT upto FROM read_mark WHERE channel_id = ? AND conversation = ?), 0)))",
            channel.row, conversation, upto, channel.row, conversation));
    }
}
