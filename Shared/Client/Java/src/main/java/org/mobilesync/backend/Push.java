package org.mobilesync.backend;

import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import org.mobilesync.SyncException;
import org.mobilesync.internal.Limits;
import org.mobilesync.internal.json.JsonText;

/** Data for a user, for a device or for all. Immutable; {@link #to} and {@link #toAll} begin one. */
public final class Push {
    private final Builder values;

    private Push(Builder values) {
        this.values = values;
    }

    /**
     * Begins a push to one user or device, as the target of the Sync ID says.
     *
     * @param bizType the Sync ID
     * @param linkToken the user id or the device id
     * @param thirdMsgId the id of this push in the backend's own data, the same at each repeat. The service stores a
     *     push once for each Sync ID, target and thirdMsgId
     * @throws BackendException INVALID_ARGUMENT for an id that is not 1 to 100 characters long
     */
    public static Builder to(String bizType, String linkToken, String thirdMsgId) {
        checkId(linkToken, "linkToken");
        return new Builder(bizType, linkToken, thirdMsgId);
    }

    /**
     * Begins a push to all users or all devices.
     *
     * @throws BackendException INVALID_ARGUMENT for an id that is not 1 to 100 characters long
     */
    public static Builder toAll(String bizType, String thirdMsgId) {
        return new Builder(bizType, null, thirdMsgId);
    }

    static void checkId(String text, String name) {
        try {
            Limits.checkId(text, name);
        } catch (SyncException error) {
            throw new BackendException(BackendException.Code.INVALID_ARGUMENT, error.getMessage());
        }
    }

    /** Collects the content of a push. {@link #build} checks it. */
    public static final class Builder {
        private final String linkToken;
        private final String bizType;
        private final String thirdMsgId;
        /** The members of the call, each as JSON text. */
        private final Map<String, String> members = new LinkedHashMap<>();
        private final Map<String, String> attributes = new LinkedHashMap<>();

        private Builder(String bizType, String linkToken, String thirdMsgId) {
            checkId(bizType, "bizType");
            checkId(thirdMsgId, "thirdMsgId");
            this.bizType = bizType;
            this.linkToken = linkToken;
            this.thirdMsgId = thirdMsgId;
        }

        private Builder put(String name, String json) {
            members.put(name, json);
            return this;
        }

        /** The data as text, of at most 4,096 UTF-16 units. */
        public Builder payload(String text) {
            members.remove("binaryPayload");
            return put("payload", JsonText.quoted(text));
        }

        /** The data as bytes, of at most 3,072. */
        public Builder binaryPayload(byte[] bytes) {
            members.remove("payload");
            return put("binaryPayload", JsonText.quoted(Base64.getEncoder().encodeToString(bytes)));
        }

        /** Only for devices with this operating system, {@code iOS} or {@code Android}; without it for all. */
        public Builder operatingSystem(String name) {
            return put("osType", JsonText.quoted(name));
        }

        /** Only for app versions from this one on, in dotted numbers. */
        public Builder minimumAppVersion(String version) {
            return put("appMinVersion", JsonText.quoted(version));
        }

        /** Only for app versions up to this one, in dotted numbers. */
        public Builder maximumAppVersion(String version) {
            return put("appMaxVersion", JsonText.quoted(version));
        }

        /** The end of validity, in milliseconds since 1970; without it the retention of the instance. */
        public Builder validUntil(long epochMs) {
            return put("validTimeEnd", Long.toString(epochMs));
        }

        /**
         * The conversation that the push belongs to; without it none.
         *
         * @throws BackendException INVALID_ARGUMENT for a name that is not 1 to 100 characters long
         */
        public Builder conversation(String name) {
            checkId(name, "conversation");
            return put("conversation", JsonText.quoted(name));
        }

        /**
         * An attribute that the filter of the Sync ID reads.
         *
         * @param value a String, a finite Number or a Boolean
         * @throws BackendException INVALID_ARGUMENT for another value
         */
        public Builder attribute(String name, Object value) {
            boolean isNumber = value instanceof Number && !Double.isNaN(((Number) value).doubleValue())
                && !Double.isInfinite(((Number) value).doubleValue());
            if (!isNumber && !(value instanceof String) && !(value instanceof Boolean)) {
                throw new BackendException(BackendException.Code.INVALID_ARGUMENT,
                    "the attribute " + name + " must be a String, a finite Number or a Boolean");
            }
            attributes.put(name, value instanceof String ? JsonText.quoted((String) value) : value.toString());
            return this;
        }

        /**
         * Returns the push.
         *
         * @throws BackendException INVALID_ARGUMENT without data
         */
        public Push build() {
            if (!members.containsKey("payload") && !members.containsKey("binaryPayload")) {
                throw new BackendException(BackendException.Code.INVALID_ARGUMENT,
                    "the push " + thirdMsgId + " has no data: call payload or binaryPayload");
            }
            Builder copy = new Builder(bizType, linkToken, thirdMsgId);
            copy.members.putAll(members);
            copy.attributes.putAll(attributes);
            return new Push(copy);
        }
    }

    /** Returns whether the push is for all users or devices. */
    boolean isGlobal() {
        return values.linkToken == null;
    }

    /** Returns the push in words, for an error. */
    String description() {
        return "the push " + values.thirdMsgId + " of " + values.bizType + " to "
            + (isGlobal() ? "all" : values.linkToken);
    }

    /** Returns the body of the call. */
    String json() {
        Map<String, String> all = new LinkedHashMap<>(target(values.bizType, values.linkToken, values.thirdMsgId));
        all.putAll(values.members);
        if (!values.attributes.isEmpty()) all.put("attributes", object(values.attributes));
        return object(all);
    }

    /** Returns the members that name a push. */
    static Map<String, String> target(String bizType, String linkToken, String thirdMsgId) {
        Map<String, String> members = new LinkedHashMap<>();
        members.put("bizType", JsonText.quoted(bizType));
        if (linkToken != null) members.put("linkToken", JsonText.quoted(linkToken));
        members.put("thirdMsgId", JsonText.quoted(thirdMsgId));
        return members;
    }

    /** Returns a JSON object with these members. */
    static String object(Map<String, String> members) {
        StringBuilder json = new StringBuilder("{");
        for (Map.Entry<String, String> member : members.entrySet()) {
            if (json.length() > 1) json.append(',');
            json.append(JsonText.quoted(member.getKey())).append(':').append(member.getValue());
        }
        return json.append('}').toString();
    }
}
