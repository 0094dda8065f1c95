package org.mobilesync.tests;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.mobilesync.SyncAppKey;
import org.mobilesync.SyncClient;
import org.mobilesync.SyncConfiguration;
import org.mobilesync.SyncEventListener;
import org.mobilesync.SyncOplog;
import org.mobilesync.SyncTransport;
import org.mobilesync.SyncTrust;
import org.mobilesync.database.JdbcDatabase;
import org.mobilesync.internal.json.JsonText;

/**
 * A program with the contract of {@code mssctl conformance client}: it prints each oplog as a line of JSON, confirms
 * it, and runs until SIGTERM.
 */
public final class ConformanceDriver {
    private ConformanceDriver() {}

    /**
     * Runs the program.
     *
     * @param arguments options {@code --host --port --ca --instance --device --user --session --store --app-version},
     *     and optionally {@code --os --app-key --app-secret-file --transport plain|websocket --no-confirm}
     */
    public static void main(String[] arguments) throws Exception {
        Map<String, String> options = options(arguments);
        SyncConfiguration.Builder settings = settings(options);
        if (options.containsKey("app-key")) {
            byte[] secret = Files.readAllBytes(Paths.get(options.get("app-secret-file")));
            settings.appKey(
                new SyncAppKey(options.get("app-key"), new String(secret, StandardCharsets.US_ASCII).trim()));
        }
        boolean confirms = !options.containsKey("no-confirm");
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        SyncClient client = new SyncClient(settings.build());
        client.addListener(new SyncEventListener() {
            @Override
            public void onConnectionLost(String reason) {
                System.err.println("connection lost: " + reason);
            }

            @Override
            public void onClosed(long code, String reason) {
                System.err.println("closed: " + code + " " + reason);
            }
        });
        client.listenToAll(oplog -> {
            byte[] line = (json(oplog) + "\n").getBytes(StandardCharsets.UTF_8);
            out.write(line, 0, line.length);
            out.flush();
            if (confirms) client.confirm(oplog).join();
        });
        client.bind(options.get("user"), options.get("session"));
        client.connect();
        CountDownLatch end = new CountDownLatch(1);
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            client.close();
            end.countDown();
        }));
        end.await();
    }

    /** Returns the options by their names without dashes; a flag has an empty value. */
    static Map<String, String> options(String[] arguments) {
        Map<String, String> options = new HashMap<>();
        for (int index = 0; index < arguments.length; index++) {
            String name = arguments[index].substring(2);
            boolean isFlag = name.equals("no-confirm");
            options.put(name, isFlag ? "" : arguments[++index]);
        }
        return options;
    }

    /** Returns the configuration of the options that the programs have in common. */
    static SyncConfiguration.Builder settings(Map<String, String> options) {
        SyncConfiguration.Builder settings = SyncConfiguration.builder()
            .gateway(options.get("host"), Integer.parseInt(options.get("port")))
            .instanceId(options.get("instance")).deviceId(options.get("device"))
            .store(options.get("store"), JdbcDatabase::open)
            .trust(SyncTrust.authorityFile(options.get("ca")))
            .operatingSystem(options.getOrDefault("os", "Android"), "")
            .appVersion(options.getOrDefault("app-version", ""));
        if ("websocket".equals(options.get("transport"))) settings.transport(SyncTransport.WEB_SOCKET);
        return settings;
    }

    /** Returns an oplog as a JSON object. */
    static String json(SyncOplog oplog) {
        StringBuilder json = new StringBuilder("{\"bizType\":").append(JsonText.quoted(oplog.bizType()))
            .append(",\"oplogId\":").append(oplog.oplogId()).append(",\"attempt\":").append(oplog.attempt());
        if (oplog.userId() != null) json.append(",\"userId\":").append(JsonText.quoted(oplog.userId()));
        if (oplog.thirdMessageId() != null) {
            json.append(",\"thirdMsgId\":").append(JsonText.quoted(oplog.thirdMessageId()));
        }
        if (oplog.recalls() != 0) {
            json.append(",\"recalls\":").append(oplog.recalls());
        } else if (oplog.isBinary()) {
            json.append(",\"base64\":\"").append(Base64.getEncoder().encodeToString(oplog.payload())).append('"');
        } else {
            json.append(",\"text\":").append(JsonText.quoted(oplog.text()));
        }
        return json.append('}').toString();
    }
}
