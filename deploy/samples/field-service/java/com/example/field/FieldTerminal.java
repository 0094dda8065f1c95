package com.example.field;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.json.JSONException;
import org.json.JSONObject;
import org.mobilesync.SyncChannelSummary;
import org.mobilesync.SyncEventListener;
import org.mobilesync.SyncOplog;
import org.mobilesync.SyncPushToken;
import org.mobilesync.SyncStatus;

/**
 * The app with a user interface of lines: it reads commands, and draws the screen again whenever something changes.
 *
 * <p>Arguments: the device's folder, and the address of the app's backend.
 */
public final class FieldTerminal {
    private static final String HELP =
        "sign-in USER\nsign-out\nsay TEXT\nolder\nwaiting\nsummary\nsuspend\nresume\nnetwork NAME|none\noffline\n"
            + "online\ntoken TEXT\nhelp\nquit";

    private final FieldApp app;
    private final String backend;
    private final Screen screen = new Screen();
    private String user;
    private Runnable endOfList = () -> {};

    private FieldTerminal(String folder, String backend) throws IOException {
        app = new FieldApp(Paths.get(folder));
        this.backend = backend;
    }

    /** Runs until {@code quit} or the end of the input. */
    public static void main(String[] arguments) throws Exception {
        FieldTerminal terminal = new FieldTerminal(arguments[0], arguments[1]);
        try {
            terminal.run();
        } finally {
            terminal.app.client.close();
        }
    }

    private void run() throws IOException {
        app.client.addListener(new SyncEventListener() {
            @Override
            public void onStatus(SyncStatus status) {
                screen.setConnected(status == SyncStatus.CONNECTED);
            }

            @Override
            public void onBindRefused(String refused, String reason) {
                reply("sign in again: " + reason);
            }
        });
        app.showAnswers(this::reply);
        screen.setUser(null);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null && !line.equals("quit"); line = in.readLine()) {
            screen.setReply(Collections.emptyList());
            try {
                String[] words = line.split(" ", 2);
                perform(words[0], words.length > 1 ? words[1] : "");
            } catch (ExecutionException error) {
                reply(error.getCause().getMessage());
            } catch (IOException | InterruptedException | RuntimeException error) {
                reply(error.getMessage());
            }
        }
    }

    private void perform(String command, String argument) throws IOException, InterruptedException, ExecutionException {
        switch (command) {
            case "sign-in":
                signIn(argument);
                return;
            case "help":
                screen.setReply(Arrays.asList(HELP.split("\n")));
                return;
            default:
                if (user == null) throw new IllegalArgumentException("sign in first: sign-in USER");
                performSignedIn(command, argument);
        }
    }

    private void performSignedIn(String command, String argument) throws InterruptedException, ExecutionException {
        switch (command) {
            case "sign-out":
                app.client.unbind().get();
                endOfList.run();
                user = null;
                screen.setUser(null);
                break;
            case "say":
                if (argument.isEmpty()) throw new IllegalArgumentException("write: say TEXT");
                app.say(argument).get();
                break;
            case "older":
                TreeMap<Long, String> page = lines(app.messagesBefore(screen.oldest()).get());
                screen.addOlder(page);
                if (page.isEmpty()) reply("there are no older messages");
                break;
            case "waiting":
                reply("waiting: " + app.client.pendingOperations().get().size());
                break;
            case "summary":
                screen.setReply(summary());
                break;
            case "suspend":
                app.client.suspend(FieldApp.CONVERSATION).get();
                reply("the conversation is suspended");
                break;
            case "resume":
                app.client.resume(FieldApp.CONVERSATION).get();
                break;
            case "network":
                app.networkChanged(argument.equals("none") ? null : argument).get();
                screen.setNetwork(argument.equals("none") ? "no network" : argument);
                break;
            case "offline":
                app.client.disconnect().get();
                break;
            case "online":
                app.client.connect().get();
                break;
            case "token":
                app.client.setPushToken(SyncPushToken.fcm(argument)).get();
                break;
            default:
                throw new IllegalArgumentException(command + " is no command; help lists them");
        }
    }

    private void signIn(String name) throws IOException, InterruptedException, ExecutionException {
        if (user != null) throw new IllegalArgumentException(user + " is signed in; sign out first");
        String session = session(name);
        app.signIn(name, session).get();
        user = name;
        screen.setUser(name);
        endOfList = app.showMessages(page -> screen.addNewest(lines(page)));
    }

    /** Signs a user in at the backend. This sample's backend asks for no password. */
    private String session(String name) throws IOException {
        HttpURLConnection call = (HttpURLConnection) new URL(backend + "/sessions/" + name).openConnection();
        if (call.getResponseCode() != 200) throw new IOException("the backend does not know the user " + name);
        try (InputStream body = call.getInputStream();
            BufferedReader reader = new BufferedReader(new InputStreamReader(body, StandardCharsets.UTF_8))) {
            return reader.readLine();
        }
    }

    private List<String> summary() throws InterruptedException, ExecutionException {
        List<String> lines = new ArrayList<>();
        for (SyncChannelSummary channel : app.client.channelSummaries().get()) {
            if (!channel.bizType().equals(FieldApp.CONVERSATION)) continue;
            lines.add("unconfirmed: " + channel.unconfirmed() + ", at the service: " + channel.notReceived());
        }
        return lines;
    }

    private void reply(String line) {
        screen.setReply(Collections.singletonList(line));
    }

    private static TreeMap<Long, String> lines(List<SyncOplog> page) {
        TreeMap<Long, String> lines = new TreeMap<>();
        for (SyncOplog oplog : page) lines.put(oplog.oplogId(), line(oplog.text()));
        return lines;
    }

    private static String line(String payload) {
        try {
            JSONObject message = new JSONObject(payload);
            return message.getString("by") + ": " + message.getString("text");
        } catch (JSONException error) {
            return "(not a message)";
        }
    }
}
