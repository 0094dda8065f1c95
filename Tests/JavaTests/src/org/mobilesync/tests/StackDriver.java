package org.mobilesync.tests;

import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Scanner;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.mobilesync.SyncChannelSummary;
import org.mobilesync.SyncClient;
import org.mobilesync.SyncConfiguration;
import org.mobilesync.SyncHistory;
import org.mobilesync.SyncOperation;
import org.mobilesync.SyncOperationResult;
import org.mobilesync.SyncOplog;
import org.mobilesync.SyncPushToken;
import org.mobilesync.SyncTransport;
import org.mobilesync.SyncTrust;
import org.mobilesync.database.JdbcDatabase;

/**
 * Uses a client against a running service: data, lists, suspension, wake-up token and operations. It prints a line for
 * each check, and ends with a status above 0 at the first one that fails.
 *
 * <p>Arguments: {@code API GATEWAY_PORT CA INSTANCE plain|websocket}.
 */
public final class StackDriver {
    private static final long LIMIT_MS = 20_000;
    private static final String BIZ_TYPE = "UCHAT";

    private final String api;
    private final String instance;
    private final String user = "stack-" + Long.toHexString(System.nanoTime());
    private final BlockingQueue<SyncOplog> shown = new LinkedBlockingQueue<>();

    private StackDriver(String api, String instance) {
        this.api = api;
        this.instance = instance;
    }

    /** Runs the checks. */
    public static void main(String[] arguments) throws Exception {
        Path folder = Files.createTempDirectory("stack-driver");
        StackDriver driver = new StackDriver(arguments[0], arguments[3]);
        SyncConfiguration configuration = SyncConfiguration.builder()
            .gateway("127.0.0.1", Integer.parseInt(arguments[1])).instanceId(arguments[3])
            .deviceId(driver.user + "-d").store(folder.resolve("store").toString(), JdbcDatabase::open)
            .trust(SyncTrust.authorityFile(arguments[2])).operatingSystem("Android", "").appVersion("1.0")
            .transport(arguments[4].equals("websocket") ? SyncTransport.WEB_SOCKET : SyncTransport.PLAIN).build();
        try (SyncClient client = new SyncClient(configuration)) {
            driver.run(client);
        }
    }

    private void run(SyncClient client) throws Exception {
        Runnable endListening = client.listen(BIZ_TYPE, oplog -> {
            shown.add(oplog);
            client.confirm(oplog);
        });
        client.bind(user, "s1");
        client.connect();
        eventually("caught up", client::isCaughtUp);
        for (int number = 1; number <= 150; number++) push(number);
        for (int number = 1; number <= 150; number++) check("text " + number, nextShown().text());
        System.out.println("pass 150 oplogs arrive in order");
        lists(client);
        suspension(client, endListening);
        operations(client);
        client.setPushToken(SyncPushToken.fcm("token")).get();
        eventually("connected again with the token", () -> client.counters().connections() == 2);
        System.out.println("pass a push token is reported by a new connect");
    }

    private void lists(SyncClient client) throws Exception {
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
        SyncChannelSummary summary = summaryOf(client);
        check("text 150", summary.last().text());
        eventually("nothing is waiting", () -> summaryOf(client).notReceived() == 0);
        System.out.println("pass history and summary");
    }

    private SyncChannelSummary summaryOf(SyncClient client) throws Exception {
        for (SyncChannelSummary summary : get(client.channelSummaries())) {
            if (summary.bizType().equals(BIZ_TYPE)) return summary;
        }
        throw new AssertionError("the summary lacks " + BIZ_TYPE);
    }

    private void suspension(SyncClient client, Runnable endListening) throws Exception {
        get(client.suspend(BIZ_TYPE));
        eventually("not eligible while suspended", () -> push(0).equals("NOT_ONLINE"));
        get(client.resume(BIZ_TYPE));
        check("text 0", nextShown().text());
        eventually("eligible again", () -> push(151).equals("SUCCESS"));
        String last = nextShown().text();
        while (last.equals("text 0")) last = nextShown().text();
        check("text 151", last);
        endListening.run();
        System.out.println("pass suspension");
    }

    private void operations(SyncClient client) throws Exception {
        BlockingQueue<SyncOperationResult> results = new LinkedBlockingQueue<>();
        client.listenForResults(results::add);
        SyncOperation operation =
            new SyncOperation("ORDER", "17", "update", "{\"a\":1}".getBytes(StandardCharsets.UTF_8));
        get(client.submit(Collections.singletonList(operation)));
        SyncOperationResult result = results.poll(LIMIT_MS, TimeUnit.MILLISECONDS);
        if (result == null) throw new AssertionError("the operation has no result");
        check(operation.id(), result.operationId());
        get(client.confirm(result));
        check(0, get(client.pendingOperations()).size());
        System.out.println("pass an operation has its result: " + result.code() + " " + result.message());
    }

    private SyncOplog nextShown() throws InterruptedException {
        SyncOplog oplog = shown.poll(LIMIT_MS, TimeUnit.MILLISECONDS);
        if (oplog == null) throw new AssertionError("nothing arrived");
        return oplog;
    }

    private static <T> T get(CompletableFuture<T> future) throws Exception {
        return future.get(LIMIT_MS, TimeUnit.MILLISECONDS);
    }

    private static void check(Object expected, Object seen) {
        if (!expected.equals(seen)) throw new AssertionError("expected " + expected + ", seen " + seen);
    }

    private static void eventually(String what, Callable<Boolean> condition) throws Exception {
        long end = System.currentTimeMillis() + LIMIT_MS;
        while (!condition.call()) {
            if (System.currentTimeMillis() > end) throw new AssertionError("did not happen: " + what);
            TimeUnit.MILLISECONDS.sleep(20);
        }
    }

    /** Pushes a text with a new id, and returns the code of the answer. */
    private String push(int number) throws Exception {
        String body = "{\"bizType\":\"" + BIZ_TYPE + "\",\"linkToken\":\"" + user + "\",\"thirdMsgId\":\"m" + number
            + "-" + System.nanoTime() + "\",\"payload\":\"text " + number + "\"}";
        HttpURLConnection call = (HttpURLConnection)
            URI.create(api + "/webapi/sync/single?instanceId=" + instance).toURL().openConnection();
        call.setDoOutput(true);
        call.setRequestProperty("Content-Type", "application/json");
        call.getOutputStream().write(body.getBytes(StandardCharsets.UTF_8));
        try (InputStream in = call.getInputStream(); Scanner scanner = new Scanner(in, "UTF-8")) {
            return scanner.nextLine().replaceAll(".*\"msg\":\"([A-Z_]*)\".*", "$1");
        }
    }
}
