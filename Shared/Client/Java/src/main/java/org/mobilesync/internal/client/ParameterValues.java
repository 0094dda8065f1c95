package org.mobilesync.internal.client;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.TreeMap;
import org.mobilesync.SyncException;
import org.mobilesync.SyncParameter;
import org.mobilesync.SyncParameterKind;
import org.mobilesync.internal.Limits;
import org.mobilesync.internal.store.Parameters;
import org.mobilesync.internal.wire.Parameter;

/** The values of subscription parameters from the app's session, the local store and the service, on the event loop. */
final class ParameterValues {
    /** The largest size, in a frame, of the values that the device sets. */
    private static final int MAX_BYTES = 20_000;
    /** Bytes of a value's other fields in a frame. */
    private static final int OTHER_BYTES = 80;

    private final Parameters store;
    /** The user whose values the session has; null for the device. */
    private String sessionUserId;
    private final List<SyncParameter> session = new ArrayList<>();

    ParameterValues(Parameters store) {
        this.store = store;
    }

    /** Ends the session's values, because the app has bound this user, or none for null. */
    void userChanged(String userId) {
        sessionUserId = userId;
        session.clear();
    }

    /** Returns the session's values of a user; none when the app has bound another one. */
    private List<SyncParameter> session(String userId) {
        return Objects.equals(userId, sessionUserId) ? session : Collections.<SyncParameter>emptyList();
    }

    /**
     * Sets a value of the bound user, or of the device for null; a null value removes it.
     *
     * @throws SyncException INVALID_ARGUMENT above the limits of the values that the device sets; STORE
     */
    void set(SyncParameter parameter, String userId) {
        boolean isServer = parameter.kind() == SyncParameterKind.SERVER;
        if (!isServer) checkSize(parameter, userId);
        if (parameter.kind() == SyncParameterKind.SESSION) {
            session.removeIf(one -> isSame(one, parameter));
            if (parameter.value() != null) session.add(parameter);
        } else {
            store.set(userId, parameter.bizType(), parameter.name(), parameter.value(), isServer);
        }
    }

    private void checkSize(SyncParameter parameter, String userId) {
        List<SyncParameter> own = own(userId);
        own.removeIf(one -> isSame(one, parameter));
        if (parameter.value() != null) own.add(parameter);
        int bytes = 0;
        for (SyncParameter one : own) bytes += bytes(one.value().json());
        if (own.size() > Limits.PARAMETERS || bytes > MAX_BYTES) {
            throw new SyncException(SyncException.Code.INVALID_ARGUMENT, "at most " + Limits.PARAMETERS
                + " parameters with " + MAX_BYTES + " bytes in total can be set; remove some first");
        }
    }

    private static int bytes(String json) {
        return json.getBytes(StandardCharsets.UTF_8).length + OTHER_BYTES;
    }

    private static boolean isSame(SyncParameter one, SyncParameter other) {
        return one.bizType().equals(other.bizType()) && one.name().equals(other.name());
    }

    /** Returns every value of a user. */
    List<SyncParameter> all(String userId) {
        List<SyncParameter> all = new ArrayList<>(session(userId));
        all.addAll(store.all(userId));
        return Collections.unmodifiableList(all);
    }

    /** Returns the values that the device sets. A value of the session replaces a value of the client. */
    private List<SyncParameter> own(String userId) {
        List<SyncParameter> own = new ArrayList<>(session(userId));
        for (SyncParameter kept : store.all(userId)) {
            boolean isReplaced = session(userId).stream().anyMatch(one -> isSame(one, kept));
            if (kept.kind() == SyncParameterKind.CLIENT && !isReplaced) own.add(kept);
        }
        return own;
    }

    /** Returns the values for Connect, Bind and Subscriptions. */
    List<Parameter> toSend(String userId) {
        Map<String, Parameter> sorted = new TreeMap<>();
        for (SyncParameter one : own(userId)) {
            Parameter parameter = new Parameter();
            parameter.bizType = one.bizType();
            parameter.name = one.name();
            parameter.value = one.value().json();
            sorted.put(one.bizType() + '\0' + one.name(), parameter);
        }
        return new ArrayList<>(sorted.values());
    }

    /** Returns the bytes of these values in a frame, at most. */
    static int bytes(List<Parameter> parameters) {
        int bytes = 0;
        for (Parameter parameter : parameters) bytes += bytes(parameter.value);
        return bytes;
    }
}
