package org.mobilesync.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.mobilesync.SyncChannelSummary;
import org.mobilesync.SyncClient;
import org.mobilesync.SyncEventListener;
import org.mobilesync.SyncException;
import org.mobilesync.SyncHistory;
import org.mobilesync.SyncOperation;
import org.mobilesync.SyncOperationResult;
import org.mobilesync.SyncTransport;
import org.mobilesync.SyncTrust;
import org.mobilesync.internal.Clock;
import org.mobilesync.internal.connection.GatewayAddress;
import org.mobilesync.internal.network.GatewayLink;
import org.mobilesync.internal.network.TlsConnector;
import org.mobilesync.internal.wire.Body;
import org.mobilesync.internal.wire.ChannelKind;
import org.mobilesync.internal.wire.ChannelSummary;
import org.mobilesync.internal.wire.Connect;
import org.mobilesync.internal.wire.HistoryRequest;
import org.mobilesync.internal.wire.Pong;
import org.mobilesync.internal.wire.Push;
import org.mobilesync.internal.wire.RequestRefusal;
import org.mobilesync.internal.wire.StoredAck;
import org.mobilesync.internal.wire.SummaryPage;
import org.mobilesync.internal.wire.SummaryRequest;

/** The client after faults of the app: failing listeners, a full executor, concurrent calls, and its end. */
class ClientFaultTests extends PlayedClient {
    /** Throws a checked exception as if it were unchecked, as code in Kotlin can. */
    @SuppressWarnings("unchecked")
    private static <E extends Throwable> void sneak(Throwable error) throws E {
        throw (E) error;
    }

    private static Push result(long after, long id, String operationId) {
        Push push = push(ChannelKind.DEVICE, after, id);
        push.batches.get(0).bizType = "MSS_RESULTS";
        push.batches.get(0).entries.get(0).payload = ("{\"results\":[{\"operationId\":\"" + operationId
            + "\",\"accepted\":true,\"code\":200,\"timestamp\":5}]}").getBytes(StandardCharsets.UTF_8);
        return push;
    }

    /** Submits operations without a connection, and pushes their results. */
    private void pushResults(PlayedGateway.Connection connection, String... operationIds) throws Exception {
        long after = 0;
        for (String id : operationIds) {
            get(client.submit(Collections.singletonList(new SyncOperation(
                id, "ORDER", "17", "update", new byte[] {1}, Collections.<SyncOperation>emptyList()))));
            connection.send(result(after, after + 1, id));
            after += 1;
        }
    }

    // Order.

    @Test
    void aNewRegistrationReceivesDataThatWasOnItsWayToTheEndedOneFirst() throws Exception {
        PlayedGateway.Connection connection = open();
        Runnable end = client.listen("UCHAT", shown::add);
        CountDownLatch release = blockListener(connection);
        connection.send(push(ChannelKind.USER, 0, 1, 2, 3));
        connection.find(StoredAck.class, ack -> ack.channels.get(0).bizType.equals("UCHAT"));
        // The hand-out follows the acknowledgement in one event of the client.
        get(client.networkChanged(true, ""));
        end.run();
        client.listen("UCHAT", shown::add);
        get(client.networkChanged(true, ""));
        release.countDown();
        for (long id = 1; id <= 3; id++) {
            assertEquals(id, nextShown().oplogId());
        }
    }

    @Test
    void concurrentBindsLeaveOneUser() throws Exception {
        CyclicBarrier barrier = new CyclicBarrier(2);
        ExecutorService threads = Executors.newFixedThreadPool(2);
        try {
            for (int round = 1; round <= 20_000; round++) {
                CompletableFuture<?>[] binds = new CompletableFuture<?>[2];
                Future<?> other = threads.submit(() -> {
                    barrier.await();
                    binds[0] = client.bind("u2", "s");
                    return null;
                });
                barrier.await();
                binds[1] = client.bind("u1", "s");
                other.get();
                get(binds[0]);
                get(binds[1]);
                assertEquals(boundUser(), visibleUser(), "in round " + round);
            }
        } finally {
            threads.shutdownNow();
        }
    }

    private Object engineField(String name) throws Exception {
        Field engine = client.getClass().getDeclaredField("engine");
        engine.setAccessible(true);
        Field field = engine.get(client).getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(engine.get(client));
    }

    private Object boundUser() throws Exception {
        return engineField("boundUserId");
    }

    private Object visibleUser() throws Exception {
        Object state = engineField("state");
        Method method = state.getClass().getDeclaredMethod("visibleUserId");
        method.setAccessible(true);
        return method.invoke(state);
    }

    // Failing listeners.

    @Test
    void anyThrowableOfADataListenerIsToldAndTheNextDataComes() throws Exception {
        PlayedGateway.Connection connection = open();
        client.listen("UCHAT", oplog -> {
            shown.add(oplog);
            if (oplog.oplogId() == 1) ClientFaultTests.<RuntimeException>sneak(new Exception("checked"));
            if (oplog.oplogId() == 2) throw new AssertionError("an Error");
        });
        connection.send(push(ChannelKind.USER, 0, 1, 2, 3));
        for (long id = 1; id <= 3; id++) {
            assertEquals(id, nextShown().oplogId());
        }
        events.find("listenerFailed checked");
        events.find("listenerFailed an Error");
    }

    @Test
    void anyThrowableOfAResultListenerIsToldAndTheNextResultComes() throws Exception {
        PlayedGateway.Connection connection = open();
        BlockingQueue<SyncOperationResult> results = new LinkedBlockingQueue<>();
        client.listenForResults(result -> {
            results.add(result);
            throw new AssertionError("an Error");
        });
        pushResults(connection, "o1", "o2");
        assertEquals("o1", results.poll(LIMIT_SECONDS, TimeUnit.SECONDS).operationId());
        assertEquals("o2", results.poll(LIMIT_SECONDS, TimeUnit.SECONDS).operationId());
        events.find("listenerFailed an Error");
    }

    @Test
    void anyThrowableOfAnEventListenerLeavesTheOtherListeners() throws Exception {
        client.close();
        client = new SyncClient(settings().build());
        client.addListener(new SyncEventListener() {
            @Override
            public void onBound(String userId) {
                throw new AssertionError("an Error");
            }
        });
        client.addListener(events);
        open();
    }

    @Test
    void anErrorInAStepOfTheClientCompletesItsFutureAndTheClientWorksOn() throws Exception {
        client.close();
        AtomicBoolean fails = new AtomicBoolean();
        make(settings().clock(new Clock() {
            @Override
            public long nanoTime() {
                if (fails.get()) throw new AssertionError("played Error");
                return System.nanoTime();
            }

            @Override
            public long wallMs() {
                return System.currentTimeMillis();
            }
        }).build());
        fails.set(true);
        ExecutionException error = assertThrows(
            ExecutionException.class, () -> get(client.connect()));
        assertEquals("played Error", error.getCause().getMessage());
        fails.set(false);
        open();
    }

    // An executor that rejects.

    @Test
    void dataThatTheExecutorRejectsOnceComesLaterInOrder() throws Exception {
        ExecutorService thread = Executors.newSingleThreadExecutor();
        AtomicInteger rejections = new AtomicInteger();
        Executor executor = task -> {
            if (rejections.getAndUpdate(left -> Math.max(0, left - 1)) > 0) throw new RejectedExecutionException();
            thread.execute(task);
        };
        try {
            client.close();
            make(settings().callbackExecutor(executor).build());
            PlayedGateway.Connection connection = open();
            events.find("status CONNECTED");
            client.listen("UCHAT", shown::add);
            get(client.networkChanged(true, ""));
            rejections.set(1);
            connection.send(push(ChannelKind.USER, 0, 1, 2));
            assertEquals(1, nextShown().attempt());
            assertEquals(2, nextShown().oplogId());
            BlockingQueue<SyncOperationResult> results = new LinkedBlockingQueue<>();
            client.listenForResults(results::add);
            get(client.networkChanged(true, ""));
            rejections.set(1);
            pushResults(connection, "o1");
            assertEquals("o1", results.poll(LIMIT_SECONDS, TimeUnit.SECONDS).operationId());
        } finally {
            client.close();
            thread.shutdownNow();
        }
    }

    // The end of the client.

    @Test
    void aHistoryThatWaitsForItsNextAttemptEndsWithTheClient() throws Exception {
        PlayedGateway.Connection connection = open();
        CompletableFuture<SyncHistory> history = client.history("UCHAT", 0, 4);
        refuseHistory(connection, RequestRefusal.TRY_AGAIN);
        Thread.sleep(60);
        client.close();
        assertEquals(SyncException.Code.CLOSED, failure(history));
    }

    @Test
    void everyCallBesideACloseHasAnEnd() throws Exception {
        for (int round = 0; round < 20; round++) {
            client.close();
            make(settings().build());
            List<CompletableFuture<?>> calls = Collections.synchronizedList(new ArrayList<>());
            CountDownLatch hasBegun = new CountDownLatch(1);
            Thread caller = new Thread(() -> {
                for (int number = 0; number < 2_000; number++) {
                    calls.add(client.networkChanged(true, ""));
                    if (number == 50) hasBegun.countDown();
                }
            });
            caller.start();
            hasBegun.await();
            client.close();
            caller.join();
            for (CompletableFuture<?> call : calls) {
                get(call.handle((nothing, error) -> null));
            }
        }
    }

    @Test
    void closeInAContinuationOfAFutureDoesNotWaitForItself() throws Exception {
        PlayedGateway.Connection connection = open();
        CompletableFuture<SyncHistory> history = client.history("UCHAT", 0, 4);
        CompletableFuture<Long> duration = history.handle((result, error) -> {
            long start = System.nanoTime();
            client.close();
            return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
        });
        refuseHistory(connection, RequestRefusal.NOT_ELIGIBLE);
        assertTrue(get(duration) < 2_000);
        connection.awaitEnd();
    }

    @Test
    void theReaderOfAClosedLinkEndsAlsoWhenItsFramesAreNotHandled() throws Exception {
        BlockingQueue<Thread> readers = new LinkedBlockingQueue<>();
        CountDownLatch hasRead = new CountDownLatch(8);
        GatewayLink link = new GatewayLink(
            new TlsConnector(SyncTrust.authorityFile(gateway.authority()), null, SyncTransport.PLAIN, 5_000),
            new GatewayAddress("127.0.0.1", gateway.port()), new GatewayLink.Listener() {
                @Override
                public void opened(GatewayLink opened) {
                    readers.add(Thread.currentThread());
                    opened.send(new Connect().frame());
                }

                @Override
                public void received(GatewayLink from, Body body) {
                    hasRead.countDown();
                }

                @Override
                public void ended(GatewayLink ended, String reason) {}
            });
        link.start();
        PlayedGateway.Connection connection = gateway.next();
        // More than two times the frames that a link reads ahead; all of them fit into the buffer of the reader.
        connection.send(Collections.nCopies(40, new Pong()));
        assertTrue(hasRead.await(LIMIT_SECONDS, TimeUnit.SECONDS));
        Thread reader = readers.take();
        link.close();
        reader.join(TimeUnit.SECONDS.toMillis(LIMIT_SECONDS / 3));
        assertFalse(reader.isAlive());
    }

    @Test
    void aListenerOfALinkThatFailsEndsTheLink() throws Exception {
        BlockingQueue<String> reasons = new LinkedBlockingQueue<>();
        GatewayLink link = new GatewayLink(
            new TlsConnector(SyncTrust.authorityFile(gateway.authority()), null, SyncTransport.PLAIN, 5_000),
            new GatewayAddress("127.0.0.1", gateway.port()), new GatewayLink.Listener() {
                @Override
                public void opened(GatewayLink opened) {
                    throw new IllegalStateException("played failure");
                }

                @Override
                public void received(GatewayLink from, Body body) {}

                @Override
                public void ended(GatewayLink ended, String reason) {
                    reasons.add(reason);
                }
            });
        link.start();
        String reason = reasons.poll(LIMIT_SECONDS, TimeUnit.SECONDS);
        assertTrue(reason != null && reason.contains("played failure"), reason);
    }

    // Lists.

    @Test
    void summariesOfAFormerUserAreAnError() throws Exception {
        PlayedGateway.Connection connection = open();
        connection.send(push(ChannelKind.USER, 0, 9));
        connection.find(StoredAck.class, ack -> true);
        CompletableFuture<List<SyncChannelSummary>> summaries = client.channelSummaries();
        CompletableFuture<SyncHistory> history = client.history("UCHAT", 0, 4);
        connection.find(SummaryRequest.class, frame -> true);
        client.bind("u2", "s2");
        assertEquals(SyncException.Code.NOT_ELIGIBLE, failure(summaries));
        history.handle((result, error) -> null).get(LIMIT_SECONDS, TimeUnit.SECONDS);
    }

    @Test
    void aLaterPageOfAFormerUsersSummariesIsAnError() throws Exception {
        PlayedGateway.Connection connection = open();
        CompletableFuture<List<SyncChannelSummary>> summaries = client.channelSummaries();
        SummaryPage page = new SummaryPage();
        page.requestNumber = connection.find(SummaryRequest.class, frame -> true).requestNumber;
        ChannelSummary channel = new ChannelSummary();
        channel.bizType = "UCHAT";
        channel.head = 12;
        channel.last = entry(12, "newest");
        page.channels.add(channel);
        page.more = true;
        connection.send(page);
        connection.find(SummaryRequest.class, frame -> frame.afterBizType.equals("UCHAT"));
        client.bind("u2", "s2");
        assertEquals(SyncException.Code.NOT_ELIGIBLE, failure(summaries));
    }

    @Test
    void theStoredHistoryOfAFormerUserIsAnError() throws Exception {
        PlayedGateway.Connection connection = open();
        Push push = push(ChannelKind.USER, 0, 9);
        push.batches.get(0).passedOverUpto = 8;
        connection.send(push);
        connection.find(StoredAck.class, ack -> true);
        CompletableFuture<SyncHistory> history = client.history("UCHAT", 0, 4);
        connection.find(HistoryRequest.class, frame -> true);
        client.bind("u2", "s2");
        assertEquals(SyncException.Code.NOT_ELIGIBLE, failure(history));
    }
}
