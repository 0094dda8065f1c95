package com.example.field;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import org.json.JSONObject;
import org.mobilesync.DeviceIdentifier;
import org.mobilesync.MetaConfig;
import org.mobilesync.SyncClient;
import org.mobilesync.SyncOperation;
import org.mobilesync.SyncOplog;
import org.mobilesync.SyncTrust;
import org.mobilesync.database.JdbcDatabase;

/**
 * The conversation of the field service app on the Java client, without a user interface. Each task has a method.
 *
 * <p>The Java client has no entities, no resources and no badges, so this app has neither incidents nor photos.
 */
final class FieldApp {
    /** The Sync ID of the messages, and the component of the operation that sends one. */
    static final String CONVERSATION = "FIELD_CHAT";
    private static final int PAGE_SIZE = 3;

    final SyncClient client;

    // Start, sign in, change the network.

    /** Opens the data in a folder with {@code meta.config} and {@code mss-ca.pem}, and connects. */
    FieldApp(Path folder) throws IOException {
        client = new SyncClient(
            MetaConfig.parse(Files.readAllBytes(folder.resolve("meta.config")), "meta.config").configuration()
                .deviceId(DeviceIdentifier.load(folder.toString()))
                .store(folder.resolve("sync.sqlite").toString(), JdbcDatabase::open) // Android: AndroidDatabase::open
                .trust(SyncTrust.authorityFile(folder.resolve("mss-ca.pem").toString()))
                .build());
        client.connect();
    }

    CompletableFuture<Void> signIn(String user, String session) {
        return client.bind(user, session);
    }

    CompletableFuture<Void> networkChanged(String name) {
        return client.networkChanged(name != null, name == null ? "" : name);
    }

    // The live list.

    /** Shows the newest messages now, and again after each one that arrives. The result ends it. */
    Runnable showMessages(Consumer<List<SyncOplog>> show) {
        Runnable refresh = () ->
            client.history(CONVERSATION, 0, PAGE_SIZE).thenAccept(page -> show.accept(page.oplogs()));
        refresh.run();
        return client.listen(CONVERSATION, oplog -> client.confirm(oplog).thenRun(refresh));
    }

    // The conversation, page by page.

    /** Returns the messages before one, newest first: from the device, then from the service. */
    CompletableFuture<List<SyncOplog>> messagesBefore(long id) {
        return client.history(CONVERSATION, id, PAGE_SIZE).thenApply(page -> page.oplogs());
    }

    // Work offline: an operation waits on the disk until there is a connection.

    /** Sends a message to all users. */
    CompletableFuture<Void> say(String text) {
        String body = new JSONObject(Collections.singletonMap("text", text)).toString();
        return client.submit(Collections.singletonList(
            new SyncOperation(CONVERSATION, "all", "say", body.getBytes(StandardCharsets.UTF_8))));
    }

    /** Shows the backend's answer to each message, also to one of an earlier run. */
    void showAnswers(Consumer<String> show) {
        client.listenForResults(answer -> {
            show.accept(answer.isAccepted() ? "the message is sent" : "the message is refused: " + answer.message());
            client.confirm(answer);
        });
    }
}
