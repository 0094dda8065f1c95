package org.mobilesync.tests;

import static org.mobilesync.tests.StackDevice.check;
import static org.mobilesync.tests.StackDevice.eventually;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.mobilesync.SyncChannelSummary;
import org.mobilesync.SyncClient;
import org.mobilesync.SyncConversation;
import org.mobilesync.SyncHistory;
import org.mobilesync.SyncOperation;
import org.mobilesync.SyncOperationResult;
import org.mobilesync.SyncOplog;
import org.mobilesync.SyncPushToken;
import org.mobilesync.SyncTransport;
import org.mobilesync.backend.BackendClient;
import org.mobilesync.backend.Push;

/**
 * Uses a client against a running service: data, lists, conversations, suspension, wake-up token and operations. It
 * prints a line for each check, and ends with a status above 0 at the first one that fails.
 *
 * <p>Arguments: {@code API GATEWAY_PORT CA INSTANCE plain|websocket}.
 */
public final class StackDriver {
    private static final String BIZ_TYPE = "UCHAT";

    private final BackendClient backend;
    private final String user = "stack-" + Long.toHexString(System.nanoTime());
    private final StackDevice device;
    private final SyncClient client;

    private StackDriver(String[] arguments) throws Exception {
        backend = BackendClient.builder(arguments[0], arguments[3]).build();
        device = StackDevice.make(arguments[1], arguments[2], arguments[3], user + "-d",
            arguments[4].equals("websocket") ? SyncTransport.WEB_SOCKET : SyncTransport.PLAIN);
        client = device.client;
    }

    /** Runs the checks. */
    public static void main(String[] arguments) throws Exception {
        StackDriver driver = new StackDriver(arguments);
        try {
            driver.run();
        } finally {
            driver.client.close();
        }
    }

    private void run() throws Exception {
        Runnable endListening = device.show(BIZ_TYPE);
        device.open(user);
        for (int number = 1; number <= 150; number++) push(number);
        for (int number = 1; number <= 150; number++) check("text " + number, device.next().text());
        System.out.println("pass 150 oplogs arrive in order");
        lists();
        recovery();
        conversations();
        suspension(endListening);
        operations();
        client.setPushToken(SyncPushToken.fcm("token")).get();
        eventually("connected again with the token", () -> client.counters().connections() == 2);
        System.out.println("pass a push token is reported by a new connect");
    }

    private void lists() throws Exception {
        SyncHistory newest = get(client.history(BIZ_TYPE, 0, 20));
        check(Arrays.asList("text 150", "text 131"),
            Arrays.asList(newest.oplogs().get(0).text(), newest.oplogs().get(19).text()));
        List<String> texts = new ArrayList<>();
        long before = 0;
        boolean hasMore = true;
        while (hasMore) {
            SyncHistory part = get(client.history(BIZ_TYPE, before, 64));
            for (SyncOplog oplog : part.oplogs()) texts.add(oplog.text());
            before = texts.isEmpty() ? 0 : part.oplogs().get(part.oplogs().size() - 1).oplogId();
            hasMore = part.hasMore();
        }
        check(150, texts.size());
        SyncChannelSummary summary = summaryOf();
        check("text 150", summary.last().text());
        eventually("nothing is waiting", () -> summaryOf().notReceived() == 0);
        System.out.println("pass history and summary");
    }

    private void recovery() throws Exception {
        get(client.recover(BIZ_TYPE));
        for (int number = 1; number <= 150; number++) {
            SyncOplog oplog = device.next();
            check("text " + number + " true", oplog.text() + " " + oplog.isReplay());
        }
        System.out.println("pass a recovery brings all 150 again, as replays");
    }

    private void conversations() throws Exception {
        for (String name : Arrays.asList("first", "second")) {
            backend.push(Push.to(BIZ_TYPE, user, "c-" + name + "-" + System.nanoTime()).payload("text in " + name)
                .conversation(name).build());
            check(name, device.next().conversation());
        }
        eventually("both are listed and have arrived", () -> conversationStates().equals("second 1 0, first 1 0"));
        SyncConversation first = get(client.conversations(BIZ_TYPE)).get(1);
        get(client.markRead(BIZ_TYPE, "first", first.last().oplogId()));
        check("second 1 0, first 0 0", conversationStates());
        check("[text in first]", textsOf("first"));
        // Without the local data, the server answers.
        get(client.unsubscribe(BIZ_TYPE));
        get(client.resume(BIZ_TYPE));
        eventually("eligible again", () -> client.history(BIZ_TYPE, 0, 1).handle((part, error) -> error == null).get());
        check("[text in first]", textsOf("first"));
        System.out.println("pass conversations");
    }

    /** Returns name, unread and notReceived of each conversation. */
    private String conversationStates() throws Exception {
        List<String> states = new ArrayList<>();
        for (SyncConversation one : get(client.conversations(BIZ_TYPE))) {
            states.add(one.conversation() + " " + one.unread() + " " + one.notReceived());
        }
        return String.join(", ", states);
    }

    private String textsOf(String conversation) throws Exception {
        List<String> texts = new ArrayList<>();
        for (SyncOplog oplog : get(client.history(BIZ_TYPE, conversation, 0, 20)).oplogs()) texts.add(oplog.text());
        return texts.toString();
    }

    private SyncChannelSummary summaryOf() throws Exception {
        for (SyncChannelSummary summary : get(client.channelSummaries())) {
            if (summary.bizType().equals(BIZ_TYPE)) return summary;
        }
        throw new AssertionError("the summary lacks " + BIZ_TYPE);
    }

    private void suspension(Runnable endListening) throws Exception {
        get(client.suspend(BIZ_TYPE));
        eventually("not eligible while suspended", () -> push(0).equals("NOT_ONLINE"));
        get(client.resume(BIZ_TYPE));
        check("text 0", device.next().text());
        eventually("eligible again", () -> push(151).equals("SUCCESS"));
        String last = device.next().text();
        while (last.equals("text 0")) last = device.next().text();
        check("text 151", last);
        endListening.run();
        System.out.println("pass suspension");
    }

    private void operations() throws Exception {
        BlockingQueue<SyncOperationResult> results = new LinkedBlockingQueue<>();
        client.listenForResults(results::add);
        SyncOperation operation =
            new SyncOperation("ORDER", "17", "update", "{\"a\":1}".getBytes(StandardCharsets.UTF_8));
        get(client.submit(Collections.singletonList(operation)));
        SyncOperationResult result = results.poll(StackDevice.LIMIT_MS, TimeUnit.MILLISECONDS);
        if (result == null) throw new AssertionError("the operation has no result");
        check(operation.id(), result.operationId());
        get(client.confirm(result));
        check(0, get(client.pendingOperations()).size());
        System.out.println("pass an operation has its result: " + result.code() + " " + result.message());
    }

    private static <T> T get(CompletableFuture<T> future) throws Exception {
        return future.get(StackDevice.LIMIT_MS, TimeUnit.MILLISECONDS);
    }

    /** Pushes a text with a new id, and returns the code of the answer. */
    private String push(int number) {
        return backend.push(
            Push.to(BIZ_TYPE, user, "m" + number + "-" + System.nanoTime()).payload("text " + number).build()).code();
    }
}
