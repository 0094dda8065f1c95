package org.mobilesync.tests;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.mobilesync.SyncClient;
import org.mobilesync.SyncConfiguration;
import org.mobilesync.SyncEventListener;
import org.mobilesync.SyncException;
import org.mobilesync.SyncOperation;
import org.mobilesync.SyncOperationResult;
import org.mobilesync.SyncOplog;
import org.mobilesync.SyncStatus;
import org.mobilesync.internal.Clock;
import org.mobilesync.internal.json.JsonText;

/**
 * An app of {@code mssctl torture}. It prints oplogs, results of operations and events as lines of JSON. Each oplog and
 * each result has a number. It takes commands on standard input: {@code bind USER SESSION}, {@code confirm NUMBER},
 * {@code submit} with {@code ID COMPONENT KEY NAME} for each operation. The first bind connects. At the end of
 * standard input the process ends without a call of the library, as a phone ends an app.
 */
public final class TortureDriver {
    private final OutputStream out = new FileOutputStream(FileDescriptor.out);
    private final SyncClient client;
    private final AtomicInteger numbers = new AtomicInteger();
    /** The confirmations of the printed oplogs and results, by number. */
    private final Map<Integer, Supplier<CompletableFuture<Void>>> confirmations = new ConcurrentHashMap<>();
    private boolean isConnected;

    private TortureDriver(SyncConfiguration configuration) {
        client = new SyncClient(configuration);
        client.addListener(new Reporter());
        client.listenToAll(this::show);
        client.listenForResults(this::show);
    }

    /**
     * Runs the program.
     *
     * @param arguments options {@code --host --port --ca --instance --device --store --app-version --clock-offset-ms
     *     --transport plain|websocket}
     */
    public static void main(String[] arguments) throws Exception {
        Map<String, String> options = ConformanceDriver.options(arguments);
        long offset = Long.parseLong(options.get("clock-offset-ms"));
        new TortureDriver(ConformanceDriver.settings(options).clock(new OffsetClock(offset)).build()).run();
    }

    private void run() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) perform(line.split(" "));
        Runtime.getRuntime().halt(0);
    }

    private void perform(String[] command) {
        switch (command[0]) {
            case "bind":
                report(client.bind(command[1], command[2]), "{\"event\":\"bindExecuted\"}");
                if (!isConnected) report(client.connect(), "{\"event\":\"connectExecuted\"}");
                isConnected = true;
                break;
            case "confirm":
                int number = Integer.parseInt(command[1]);
                report(confirmations.remove(number).get(), "{\"event\":\"confirmed\",\"number\":" + number + "}");
                break;
            case "submit":
                List<SyncOperation> operations = new ArrayList<>();
                for (int at = 1; at < command.length; at += 4) {
                    operations.add(new SyncOperation(
                        command[at], command[at + 1], command[at + 2], command[at + 3],
                        "{}".getBytes(StandardCharsets.UTF_8), Collections.<SyncOperation>emptyList()));
                }
                report(client.submit(operations), "{\"event\":\"stored\"}");
                break;
            default:
                throw new IllegalArgumentException("unknown command " + command[0]);
        }
    }

    /** Prints a line when a call has succeeded. A failed call ends the program, so that the run reports it. */
    private void report(CompletableFuture<Void> call, String line) {
        call.whenComplete((nothing, error) -> {
            if (error == null) {
                print(line);
            } else {
                error.printStackTrace();
                Runtime.getRuntime().halt(1);
            }
        });
    }

    private int number(Supplier<CompletableFuture<Void>> confirmation) {
        int number = numbers.incrementAndGet();
        confirmations.put(number, confirmation);
        return number;
    }

    private void show(SyncOplog oplog) {
        int number = number(() -> client.confirm(oplog));
        print("{\"event\":\"oplog\",\"number\":" + number + ",\"oplog\":" + ConformanceDriver.json(oplog) + "}");
    }

    private void show(SyncOperationResult result) {
        int number = number(() -> client.confirm(result));
        print("{\"event\":\"result\",\"number\":" + number + ",\"result\":{\"operationId\":"
            + JsonText.quoted(result.operationId()) + ",\"isAccepted\":" + result.isAccepted() + ",\"code\":"
            + result.code() + "}}");
    }

    private synchronized void print(String line) {
        try {
            out.write((line + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (java.io.IOException error) {
            Runtime.getRuntime().halt(1);
        }
    }

    private void print(String event, String reason) {
        print("{\"event\":" + JsonText.quoted(event) + ",\"reason\":" + JsonText.quoted(reason) + "}");
    }

    /** Prints the events. */
    private final class Reporter implements SyncEventListener {
        @Override
        public void onBound(String userId) {
            print("bound", userId);
        }

        @Override
        public void onBindRefused(String userId, String reason) {
            print("bindRefused", reason);
        }

        @Override
        public void onCaughtUp(String userId) {
            String user = userId == null ? "" : ",\"userId\":" + JsonText.quoted(userId);
            print("{\"event\":\"caughtUp\"" + user + "}");
        }

        @Override
        public void onSessionInvalid(String userId, String reason) {
            print("sessionInvalid", reason);
        }

        @Override
        public void onStatus(SyncStatus status) {
            print(status == SyncStatus.CONNECTED ? "status" : "disconnected", status.toString());
        }

        @Override
        public void onConnectionLost(String reason) {
            print("disconnected", reason);
        }

        @Override
        public void onClosed(long code, String reason) {
            print("disconnected", "closed with " + code + ": " + reason);
        }

        @Override
        public void onClosedForGood(long code, String reason) {
            print("closedForGood", reason);
        }

        @Override
        public void onRegisteredAnew(String deviceId) {
            print("registeredAnew", deviceId);
        }

        @Override
        public void onStoreRolledBack() {
            print("storeRolledBack", "");
        }

        @Override
        public void onStoreFull() {
            print("storeFull", "");
        }

        @Override
        public void onStoreFailed(SyncException error) {
            print("storeFailed", error.toString());
        }

        @Override
        public void onListenerFailed(Throwable error) {
            error.printStackTrace();
        }
    }

    /** A phone's clock that is fast or slow. */
    private static final class OffsetClock implements Clock {
        private final long offsetMs;

        private OffsetClock(long offsetMs) {
            this.offsetMs = offsetMs;
        }

        @Override
        public long nanoTime() {
            return System.nanoTime();
        }

        @Override
        public long wallMs() {
            return System.currentTimeMillis() + offsetMs;
        }
    }
}
