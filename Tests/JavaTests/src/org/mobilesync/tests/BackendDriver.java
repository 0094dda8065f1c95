package org.mobilesync.tests;

import static org.mobilesync.tests.StackDevice.check;
import static org.mobilesync.tests.StackDevice.eventually;

import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Arrays;
import java.util.List;
import org.mobilesync.SyncOplog;
import org.mobilesync.SyncTransport;
import org.mobilesync.backend.BackendClient;
import org.mobilesync.backend.BackendException;
import org.mobilesync.backend.Push;
import org.mobilesync.backend.PushResult;
import org.mobilesync.backend.PushTrace;

/**
 * Uses the backend client against a running service, with a device that receives. It prints a line for each check, and
 * ends with a status above 0 at the first one that fails.
 *
 * <p>Arguments: {@code API GATEWAY_PORT CA INSTANCE KEY SECRET_FILE}.
 */
public final class BackendDriver {
    private static final String BIZ_TYPE = "UCHAT";

    private final String api;
    private final String instance;
    private final String key;
    private final String secret;
    private final BackendClient backend;
    private final String user = "backend-" + Long.toHexString(System.nanoTime());
    private final StackDevice device;

    private BackendDriver(String[] arguments) throws Exception {
        api = arguments[0];
        instance = arguments[3];
        key = arguments[4];
        secret = new String(Files.readAllBytes(Paths.get(arguments[5])), StandardCharsets.US_ASCII).trim();
        // A recall is uncertain while a replaced lease of a gateway is on record: 6 s, and more on a busy machine.
        backend = BackendClient.builder(api, instance).key(key, secret).attempts(8).build();
        device = StackDevice.make(arguments[1], arguments[2], instance, user + "-d", SyncTransport.PLAIN);
    }

    /** Runs the checks. */
    public static void main(String[] arguments) throws Exception {
        BackendDriver driver = new BackendDriver(arguments);
        try {
            driver.run();
        } finally {
            driver.device.client.close();
        }
    }

    private Push push(String id, String text) {
        return Push.to(BIZ_TYPE, user, id).payload(text).build();
    }

    private void run() throws Exception {
        // Every ingest knows a new key within 2 s.
        eventually("the key is known", () -> {
            try {
                return backend.push(push("first", "first \"quoted\" Zoë")).isAccepted();
            } catch (BackendException error) {
                if (error.code() != BackendException.Code.UNAUTHORIZED) throw error;
                return false;
            }
        });
        device.show(BIZ_TYPE);
        device.open(user);
        check("first \"quoted\" Zoë", device.next().text());
        check("SUCCESS", backend.push(push("second", "second")).code());
        check("second", device.next().text());
        System.out.println("pass H1, H9: signed pushes arrive");
        batch();
        lostAnswer();
        traceAndRecall();
        refusals();
    }

    private void batch() throws Exception {
        List<PushResult> results = backend.push(Arrays.asList(push("b1", "one"),
            Push.to("NO-SUCH-ID", user, "b2").payload("x").build(), push("b3", "three"), push("second", "again")));
        check("SUCCESS", results.get(0).code());
        check(BackendException.Code.UNKNOWN_SYNC_ID, results.get(1).error().code());
        check(true, results.get(2).oplogId() > results.get(0).oplogId());
        check("DUPLICATED_BIZ_ID", results.get(3).code());
        check("one three", device.next().text() + " " + device.next().text());
        System.out.println("pass H6: a batch has a result for each push");
    }

    /** The platform's HTTP client repeats the request by itself, with the used nonce; the client signs it anew. */
    private void lostAnswer() throws Exception {
        long stored = device.client.counters().oplogsStored();
        try (LosingProxy proxy = new LosingProxy(URI.create(api).getPort(), 3)) {
            BackendClient caller = BackendClient.builder(proxy.address(), instance).key(key, secret).build();
            PushResult result = caller.push(push("lost", "answer lost"));
            check("DUPLICATED_BIZ_ID", result.code());
            check(3, proxy.lost());
            SyncOplog shown = device.next();
            check("answer lost " + result.oplogId(), shown.text() + " " + shown.oplogId());
        }
        backend.push(push("after", "after it"));
        check("after it", device.next().text());
        check(stored + 2, device.client.counters().oplogsStored());
        System.out.println("pass H5: a push whose answer was lost is repeated, and delivered once");
    }

    private void traceAndRecall() throws Exception {
        eventually("delivered", () -> backend.trace(BIZ_TYPE, user, "lost").state().equals("DELIVERED"));
        PushTrace trace = backend.trace(BIZ_TYPE, user, "lost");
        check(user + "-d DELIVERED", trace.receivers().get(0).deviceId() + " " + trace.receivers().get(0).state());
        check(true, trace.receivers().get(0).confirmedAtMs() >= trace.acceptedAtMs());
        String other = user + " ä&=+";
        long id = backend.push(Push.to(BIZ_TYPE, other, "r").binaryPayload(new byte[] {1, 0, -1}).build()).oplogId();
        check(id, backend.recall(BIZ_TYPE, other, "r"));
        check("RECALLED", backend.trace(BIZ_TYPE, other, "r").state());
        check(true, backend.trace(BIZ_TYPE, other, "r").recalledAtMs() > 0);
        System.out.println("pass H7: trace and recall");
    }

    private void refusals() {
        BackendClient.Builder wrong = BackendClient.builder(api, instance)
            .key(key, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
        failure(BackendException.Code.UNAUTHORIZED, () -> wrong.build().push(push("w", "x")));
        failure(BackendException.Code.FORBIDDEN, () -> BackendClient.builder(api, "demo_app").key(key, secret).build()
            .push(push("w", "x")));
        failure(BackendException.Code.UNKNOWN_SYNC_ID,
            () -> backend.push(Push.to("NO-SUCH-ID", user, "w").payload("x").build()));
        failure(BackendException.Code.WRONG_SCOPE,
            () -> backend.push(Push.toAll(BIZ_TYPE, "w").payload("x").build()));
        failure(BackendException.Code.REFUSED,
            () -> backend.push(push("w", new String(new char[4_097]).replace('\0', 'x'))));
        failure(BackendException.Code.REFUSED, () -> backend.recall(BIZ_TYPE, user, "never pushed"));
        System.out.println("pass every refusal has its code");
    }

    private static void failure(BackendException.Code code, Runnable call) {
        try {
            call.run();
        } catch (BackendException error) {
            System.out.println(error.getMessage());
            check(code, error.code());
            return;
        }
        throw new AssertionError("no error, expected " + code);
    }
}
