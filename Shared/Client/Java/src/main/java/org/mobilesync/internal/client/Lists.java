package org.mobilesync.internal.client;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import org.mobilesync.SyncChannelSummary;
import org.mobilesync.SyncConversation;
import org.mobilesync.SyncException;
import org.mobilesync.SyncHistory;
import org.mobilesync.SyncOplog;
import org.mobilesync.internal.ChannelKinds;
import org.mobilesync.internal.Limits;
import org.mobilesync.internal.connection.BoundUser;
import org.mobilesync.internal.connection.ConnectionMachine;
import org.mobilesync.internal.store.HistoryStore;
import org.mobilesync.internal.wire.Body;
import org.mobilesync.internal.wire.ChannelSummary;
import org.mobilesync.internal.wire.HistoryPage;
import org.mobilesync.internal.wire.HistoryRequest;
import org.mobilesync.internal.wire.RequestRefusal;
import org.mobilesync.internal.wire.SummaryPage;
import org.mobilesync.internal.wire.SummaryRequest;

/** Histories, summaries and conversations: first from the local store, then page by page from the gateway. */
public final class Lists {
    private static final int MOST_ATTEMPTS = 5;
    private static final long RETRY_STEP_MS = 200;

    private final ClientEngine engine;
    private final ConnectionDriver driver;
    private final HistoryStore store;

    Lists(ClientEngine engine, ConnectionDriver driver, HistoryStore store) {
        this.engine = engine;
        this.driver = driver;
        this.store = store;
    }

    /** Makes a new request for each attempt, because a sent request has its numbers. */
    private interface RequestMaker {
        Body make();
    }

    /** Receives a page and the user of the request; the page is null without an answer. */
    private interface PageHandler {
        void handle(Body page, String userId);
    }

    /** Asks the gateway, at most five times while it is overloaded. Errors complete the result of the call. */
    private void ask(RequestMaker maker, int attempt, CompletableFuture<?> result, PageHandler handler) {
        BoundUser user = driver.boundUser();
        ConnectionMachine.Answer answer = page -> {
            if (refusal(page) == RequestRefusal.TRY_AGAIN) {
                if (attempt < MOST_ATTEMPTS) {
                    Runnable again = () -> ask(maker, attempt + 1, result, handler);
                    engine.later(
                        () -> engine.step(again, result::completeExceptionally), RETRY_STEP_MS * attempt);
                    return;
                }
                handler.handle(null, null);
                return;
            }
            // In an event of its own, so that a failing step does not disturb the connection's event.
            engine.step(() -> handler.handle(page, user == null ? null : user.userId()), result::completeExceptionally);
        };
        driver.ask(maker.make(), answer);
    }

    private static long refusal(Body page) {
        if (page instanceof HistoryPage) return ((HistoryPage) page).refusal;
        return page instanceof SummaryPage ? ((SummaryPage) page).refusal : RequestRefusal.NONE;
    }

    /**
     * Returns the newest oplogs of a Sync ID below an id; 0 for the newest.
     *
     * @param conversation only oplogs of this one; null: all
     */
    public CompletableFuture<SyncHistory> history(String bizType, String conversation, long before, int count) {
        CompletableFuture<SyncHistory> result = engine.result();
        engine.step(() -> {
            String userId = engine.state().visibleUserId();
            HistoryStore.LocalPart local = store.history(bizType, conversation, userId, before, count);
            if (local.complete().size() >= count || local.requestBefore() == HistoryStore.NOTHING_OLDER) {
                result.complete(
                    new SyncHistory(local.complete(), local.complete().size() >= count, true));
                return;
            }
            new HistoryRun(bizType, conversation, userId, count, local, result).request(local.requestBefore());
        }, result::completeExceptionally);
        return result;
    }

    /** Returns the stored oplogs. The parameters are as in {@link #history}. */
    public CompletableFuture<SyncHistory> localHistory(String bizType, String conversation, long before, int count) {
        CompletableFuture<SyncHistory> result = engine.result();
        engine.step(() -> {
            HistoryStore.LocalPart local =
                store.history(bizType, conversation, engine.state().visibleUserId(), before, count);
            result.complete(new SyncHistory(
                local.allStored(),
                local.allStored().size() >= count || local.requestBefore() != HistoryStore.NOTHING_OLDER,
                local.complete().size() == local.allStored().size()));
        }, result::completeExceptionally);
        return result;
    }

    /** One history that continues at the gateway, page by page. */
    private final class HistoryRun {
        private final String bizType;
        private final String conversation;
        private final String userId;
        private final int count;
        private final HistoryStore.LocalPart local;
        private final CompletableFuture<SyncHistory> result;
        private final List<SyncOplog> oplogs;

        HistoryRun(String bizType, String conversation, String userId, int count, HistoryStore.LocalPart local,
            CompletableFuture<SyncHistory> result) {
            this.bizType = bizType;
            this.conversation = conversation;
            this.userId = userId;
            this.count = count;
            this.local = local;
            this.result = result;
            oplogs = new ArrayList<>(local.complete());
        }

        void request(long before) {
            ask(() -> {
                HistoryRequest request = new HistoryRequest();
                request.bizType = bizType;
                request.conversation = conversation == null ? "" : conversation;
                request.before = before;
                request.count = Math.min(count - oplogs.size(), Limits.HISTORY_PAGE);
                return request;
            }, 1, result, (page, askedUserId) -> received((HistoryPage) page, askedUserId, before));
        }

        private void received(HistoryPage page, String askedUserId, long before) {
            if (page == null) {
                if (local.allStored().stream().anyMatch(oplog -> oplog.userId() != null)) checkUser(userId);
                boolean isMore = oplogs.size() > local.allStored().size();
                result.complete(new SyncHistory(isMore ? oplogs : local.allStored(), true, false));
                return;
            }
            if (page.refusal != RequestRefusal.NONE) {
                throw new SyncException(SyncException.Code.NOT_ELIGIBLE,
                    "the gateway does not give " + bizType + " to this device and user now; bind, or try later");
            }
            if (ChannelKinds.needsUser(page.kind)) checkUser(userId, askedUserId);
            oplogs.addAll(store.storePage(page, bizType, conversation, askedUserId, before));
            if (page.more && oplogs.size() < count) {
                request(page.next);
            } else {
                result.complete(new SyncHistory(oplogs, page.more, true));
            }
        }
    }

    /** Throws when the app has bound another user since a call began, because the result would be of the former one. */
    private void checkUser(String userId) {
        if (Objects.equals(engine.state().visibleUserId(), userId)) return;
        throw new SyncException(SyncException.Code.NOT_ELIGIBLE,
            "another user has been bound meanwhile; ask again for that user");
    }

    /** Checks also the user of the connection when it was asked. */
    private void checkUser(String userId, String askedUserId) {
        checkUser(userId);
        if (Objects.equals(askedUserId, userId)) return;
        throw new SyncException(SyncException.Code.NOT_ELIGIBLE,
            "the connection did not have the bound user at the time of the request; ask again");
    }

    /** Returns the state of each channel, on the device and on the server. */
    public CompletableFuture<List<SyncChannelSummary>> summaries() {
        CompletableFuture<List<SyncChannelSummary>> result = engine.result();
        engine.step(
            () -> new ChannelRun(engine.state().visibleUserId(), result).request(""), result::completeExceptionally);
        return result;
    }

    /** Returns the state of each conversation of a Sync ID, on the device and on the server. */
    public CompletableFuture<List<SyncConversation>> conversations(String bizType) {
        CompletableFuture<List<SyncConversation>> result = engine.result();
        engine.step(() -> new ConversationRun(bizType, engine.state().visibleUserId(), result).request(""),
            result::completeExceptionally);
        return result;
    }

    /** Summaries of the store that continue at the gateway, page by page. */
    private abstract class SummaryRun<T> {
        final String userId;
        /** The summaries by their names. The service sorts the pages by the same names. */
        final Map<String, T> summaries = new HashMap<>();
        private final Comparator<T> order;
        private final CompletableFuture<List<T>> result;

        SummaryRun(String userId, Comparator<T> order, CompletableFuture<List<T>> result) {
            this.userId = userId;
            this.order = order;
            this.result = result;
        }

        /** Lets a request begin after a name; empty: with the first summary. */
        abstract void continueAfter(String name, SummaryRequest request);

        /** Returns the name after which the next page begins. */
        abstract String next(SummaryPage page);

        /** Returns the name of a summary. */
        abstract String name(ChannelSummary summary);

        /** Returns the server's summary merged with the local one, which can be null; null: none. */
        abstract T merged(ChannelSummary summary, T local);

        /** Returns a summary after the last page, which may have left it out. */
        T answered(T summary) {
            return summary;
        }

        void request(String after) {
            ask(() -> {
                SummaryRequest request = new SummaryRequest();
                continueAfter(after, request);
                request.count = Limits.SUMMARY_PAGE;
                return request;
            }, 1, result, (page, askedUserId) -> received((SummaryPage) page, askedUserId, after));
        }

        private void received(SummaryPage page, String askedUserId, String after) {
            checkUser(userId);
            boolean hasPage = page != null && page.refusal == RequestRefusal.NONE;
            if (hasPage) {
                for (ChannelSummary summary : page.channels) {
                    if (summary.bizType.equals(Limits.RESULTS)) continue;
                    if (ChannelKinds.needsUser(summary.kind)) checkUser(userId, askedUserId);
                    T merged = merged(summary, summaries.get(name(summary)));
                    if (merged != null) summaries.put(name(summary), merged);
                }
            }
            // The names rise, so the requests end also when a gateway repeats a page.
            if (hasPage && page.more && compareBytes(next(page), after) > 0) {
                request(next(page));
                return;
            }
            if (hasPage && !page.more) summaries.replaceAll((name, summary) -> answered(summary));
            List<T> sorted = new ArrayList<>(summaries.values());
            sorted.sort(order);
            result.complete(sorted);
        }
    }

    private final class ChannelRun extends SummaryRun<SyncChannelSummary> {
        ChannelRun(String userId, CompletableFuture<List<SyncChannelSummary>> result) {
            super(userId, Comparator.comparing(SyncChannelSummary::bizType, Lists::compareBytes), result);
            for (SyncChannelSummary local : store.summaries(userId)) summaries.put(local.bizType(), local);
        }

        @Override
        void continueAfter(String name, SummaryRequest request) {
            request.afterBizType = name;
        }

        @Override
        String next(SummaryPage page) {
            return page.channels.isEmpty() ? "" : page.channels.get(page.channels.size() - 1).bizType;
        }

        @Override
        String name(ChannelSummary summary) {
            return summary.bizType;
        }

        @Override
        SyncChannelSummary merged(ChannelSummary summary, SyncChannelSummary local) {
            return store.merged(summary, userId, local);
        }
    }

    private final class ConversationRun extends SummaryRun<SyncConversation> {
        private final String bizType;

        ConversationRun(String bizType, String userId, CompletableFuture<List<SyncConversation>> result) {
            super(userId, Comparator.comparing((SyncConversation one) -> one.last().oplogId()).reversed(), result);
            this.bizType = bizType;
            for (SyncConversation local : store.conversations(bizType, userId)) {
                summaries.put(local.conversation(), local);
            }
        }

        @Override
        void continueAfter(String name, SummaryRequest request) {
            request.conversationsOf = bizType;
            request.afterConversation = name;
        }

        @Override
        String next(SummaryPage page) {
            return page.nextConversation;
        }

        @Override
        String name(ChannelSummary summary) {
            return summary.conversation;
        }

        @Override
        SyncConversation merged(ChannelSummary summary, SyncConversation local) {
            return store.merged(summary, userId, local);
        }

        @Override
        SyncConversation answered(SyncConversation one) {
            // The server has no valid oplog of a conversation that it did not list.
            return new SyncConversation(
                bizType, one.conversation(), one.last(), one.unread(), Math.max(one.notReceived(), 0));
        }
    }

    /** Compares as the service does: by the bytes of UTF-8. */
    private static int compareBytes(String one, String other) {
        byte[] left = one.getBytes(StandardCharsets.UTF_8);
        byte[] right = other.getBytes(StandardCharsets.UTF_8);
        for (int index = 0; index < Math.min(left.length, right.length); index++) {
            int difference = (left[index] & 0xff) - (right[index] & 0xff);
            if (difference != 0) return difference;
        }
        return left.length - right.length;
    }
}
