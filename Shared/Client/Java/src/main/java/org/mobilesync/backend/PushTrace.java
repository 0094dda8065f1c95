package org.mobilesync.backend;

import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The delivery state of a push, as a whole and for each device. Times are milliseconds since 1970; 0 is unknown. */
public final class PushTrace {
    private final ApiAnswer answer;
    private final List<Receiver> receivers = new ArrayList<>();
    private final Map<String, Long> counts = new LinkedHashMap<>();

    PushTrace(ApiAnswer answer) {
        this.answer = answer;
        for (ApiAnswer one : objects("receivers")) receivers.add(new Receiver(one));
        for (ApiAnswer one : objects("counts")) counts.put(one.text("state"), one.number("count"));
    }

    private List<ApiAnswer> objects(String name) {
        List<ApiAnswer> objects = new ArrayList<>();
        List<String> texts = answer.elements(name);
        if (texts == null) return objects;
        for (String text : texts) objects.add(ApiAnswer.of(answer.status(), text, 0));
        return objects;
    }

    /** The state of the push on one device. */
    public static final class Receiver {
        private final ApiAnswer members;

        private Receiver(ApiAnswer members) {
            this.members = members;
        }

        /** Returns the id of the device. */
        public String deviceId() {
            return members.text("deviceId");
        }

        /** Returns the state, for example {@code DELIVERED} or {@code NOT_CONNECTED}. */
        public String state() {
            return members.text("state");
        }

        /** Returns the reason for the state, a sentence for people. */
        public String detail() {
            return members.text("detail");
        }

        /** Returns whether the device is connected now. */
        public boolean isConnected() {
            return members.flag("connected");
        }

        /** Returns the number of hand-outs to the app, as far as the device has reported them. */
        public long attempts() {
            return members.number("attempts");
        }

        /** Returns the time at which the push was first sent to the device. */
        public long handedOutAtMs() {
            return members.number("handedOutAt");
        }

        /** Returns the time at which the app confirmed the push. */
        public long confirmedAtMs() {
            return members.number("confirmedAt");
        }
    }

    /** Returns the state of the push as a whole, for example {@code DELIVERED} or {@code NOT_CONNECTED}. */
    public String state() {
        return answer.text("state");
    }

    /** Returns the first obstacle, or that the push was delivered: a sentence for people. */
    public String detail() {
        return answer.text("detail");
    }

    /** Returns the id of the oplog. */
    public long oplogId() {
        return answer.number("oplogId");
    }

    /** Returns the time at which the push was stored. */
    public long acceptedAtMs() {
        return answer.number("acceptedAt");
    }

    /** Returns the time after which no device receives the push. */
    public long validUntilMs() {
        return answer.number("validUntil");
    }

    /** Returns the time of the recall. */
    public long recalledAtMs() {
        return answer.number("recalledAt");
    }

    /** Returns the devices of a push to one user or device; empty for a global push. */
    public List<Receiver> receivers() {
        return Collections.unmodifiableList(receivers);
    }

    /** Returns the number of devices in each state, for a global push; otherwise empty. */
    public Map<String, Long> counts() {
        return Collections.unmodifiableMap(counts);
    }
}
