package com.example.field;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.TreeMap;

/** The content of the terminal. It is drawn again after each change that can be seen. */
final class Screen {
    private String user;
    private boolean isConnected;
    private String network = "";
    /** The messages by id, the oldest first. */
    private final TreeMap<Long, String> messages = new TreeMap<>();
    private boolean hasOlder;
    private List<String> reply = Collections.emptyList();
    private List<String> drawn = Collections.emptyList();

    synchronized void setUser(String user) {
        this.user = user;
        messages.clear();
        hasOlder = false;
        draw();
    }

    synchronized void setConnected(boolean isConnected) {
        this.isConnected = isConnected;
        draw();
    }

    synchronized void setNetwork(String network) {
        this.network = network;
        draw();
    }

    synchronized void setReply(List<String> reply) {
        this.reply = reply;
        draw();
    }

    /**
     * Shows the newest messages. They replace the former ones, unless the user has read older ones, which they follow
     * without a gap. A page that was read before the present one has no effect.
     */
    synchronized void addNewest(TreeMap<Long, String> page) {
        if (page.isEmpty() || !messages.isEmpty() && page.lastKey() < messages.lastKey()) return;
        if (!hasOlder || Collections.disjoint(messages.keySet(), page.keySet())) {
            messages.clear();
            hasOlder = false;
        }
        messages.putAll(page);
        draw();
    }

    /** Shows the messages before the oldest one. */
    synchronized void addOlder(TreeMap<Long, String> page) {
        messages.putAll(page);
        hasOlder = true;
        draw();
    }

    /** Returns the id of the oldest message; 0: there is none. */
    synchronized long oldest() {
        return messages.isEmpty() ? 0 : messages.firstKey();
    }

    private void draw() {
        List<String> lines = new ArrayList<>();
        if (user == null) {
            lines.add("not signed in");
        } else {
            String place = network.isEmpty() ? "" : ", " + network;
            lines.add(user + (isConnected ? ", connected" : ", offline") + place);
            for (String message : messages.values()) lines.add("  " + message);
        }
        lines.addAll(reply);
        if (lines.equals(drawn)) return;
        drawn = lines;
        System.out.println(String.join("\n", lines) + "\n");
    }
}
