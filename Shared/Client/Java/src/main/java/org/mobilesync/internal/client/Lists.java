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

/** Histories and summaries: first from the local store, then page by page from the gateway. */
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

    /** Returns the newest oplogs of a Sync ID below an id; 0 for the newest. */
    public CompletableFuture<SyncHistory> history(String bizType, long before, int count) {
        CompletableFuture<SyncHistory> result = engine.result();
        engine.step(() -> {
            String userId = engine.state().visibleUserId();
            HistoryStore.LocalPart local = store.history(bizType, userId, before, count);
            if (local.complete().size() >= count || local.requestBefore() == HistoryStore.NOTHING_OLDER) {
                result.complete(
                    new SyncHistory(local.complete(), local.complete().size() >= count, true));
                return;
            }
            new HistoryRun(bizType, userId, count, local, result).request(local.requestBefore());
        }, result::completeExceptionally);
        return result;
    }

    /** Returns the stored oplogs of a Sync ID below an id; 0 for the newest. */
    public CompletableFuture<SyncHistory> localHistory(String bizType, long before, int count) {
        CompletableFuture<SyncHistory> result = engine.result();
        engine.step(() -> {
            HistoryStore.LocalPart local = store.history(bizType, engine.state().visibleUserId(), before, count);
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
        private final String userId;
        private final int count;
        private final HistoryStore.LocalPart local;
        private final CompletableFuture<SyncHistory> result;
        private final List<SyncOplog> oplogs;

        HistoryRun(String bizType, String userId, int count, HistoryStore.LocalPart local,
            CompletableFuture<SyncHistory> result) {
            this.bizType = bizType;
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
            oplogs.addAll(store.storePage(page, bizType, askedUserId, before));
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
            () -> new SummaryRun(engine.state().visibleUserId(), result).request(""), result::completeExceptionally);
        return result;
    }

    /** Summaries of the store that continue at the gateway, page by page. */
    private final class SummaryRun {
        private final String userId;
        private final CompletableFuture<List<SyncChannelSummary>> result;
        private final Map<String, SyncChannelSummary> summaries = new HashMap<>();

        SummaryRun(String userId, CompletableFuture<List<SyncChannelSummary>> result) {
            this.userId = userId;
            this.result = result;
            for (SyncChannelSummary local : store.summaries(userId)) summaries.put(local.bizType(), local);
        }

        void request(String after) {
            ask(() -> {
                SummaryRequest request = new SummaryRequest();
                request.afterBizType = after;
                request.count = Limits.SUMMARY_PAGE;
                return request;
            }, 1, result, (page, askedUserId) -> received((SummaryPage) page, askedUserId, after));
        }

        private void received(SummaryPage page, String askedUserId, String after) {
            checkUser(userId);
            String last = after;
            boolean hasPage = page != null && page.refusal == RequestRefusal.NONE;
            if (hasPage) {
                for (ChannelSummary channel : page.channels) {
                    last = channel.bizType;
                    if (last.equals(Limits.RESULTS)) continue;
                    if (ChannelKinds.needsUser(channel.kind)) checkUser(userId, askedUserId);
                    summaries.put(last, store.merged(channel, userId, summaries.get(last)));
                }
            }
            if (hasPage && page.more && !last.equals(after)) {
                request(last);
                return;
            }
            List<SyncChannelSummary> sorted = new ArrayList<>(summaries.values());
            sorted.sort(Comparator.comparing(SyncChannelSummary::bizType, Lists::compareBytes));
            result.complete(sorted);
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
