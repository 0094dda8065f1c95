package org.mobilesync;

/** The result of an operation (DeviceProtocol.md, Results). Immutable. */
public final class SyncOperationResult {
    private final String operationId;
    private final String userId;
    private final String component;
    private final String entityKey;
    private final String name;
    private final boolean isAccepted;
    private final long code;
    private final String level;
    private final String message;
    private final String requestId;
    private final long timestampMs;
    private final String imported;

    private SyncOperationResult(Builder builder) {
        operationId = builder.operationId;
        userId = builder.userId;
        component = builder.component;
        entityKey = builder.entityKey;
        name = builder.name;
        isAccepted = builder.isAccepted;
        code = builder.code;
        level = builder.level;
        message = builder.message;
        requestId = builder.requestId;
        timestampMs = builder.timestampMs;
        imported = builder.imported;
    }

    /** The values of a result. For the library's own use; an app receives results and makes none. */
    public static final class Builder {
        public String operationId = "";
        public String userId = "";
        public String component = "";
        public String entityKey = "";
        public String name = "";
        public boolean isAccepted;
        public long code;
        public String level = "";
        public String message = "";
        public String requestId = "";
        public long timestampMs;
        public String imported;

        /** Returns the result. */
        public SyncOperationResult build() {
            return new SyncOperationResult(this);
        }
    }

    /** Returns the id of the operation. */
    public String operationId() {
        return operationId;
    }

    /** Returns the user of the operation. */
    public String userId() {
        return userId;
    }

    /** Returns the type of the entity. */
    public String component() {
        return component;
    }

    /** Returns the entity's key. */
    public String entityKey() {
        return entityKey;
    }

    /** Returns the operation's name. */
    public String name() {
        return name;
    }

    /** Returns whether the tenant has executed the operation. */
    public boolean isAccepted() {
        return isAccepted;
    }

    /** Returns the tenant's code; 504 when the service has stopped calling the tenant. */
    public long code() {
        return code;
    }

    /** Returns {@code INFO}, {@code WARN}, {@code ERROR} or another level of the tenant. */
    public String level() {
        return level;
    }

    /** Returns the tenant's text for the user or the developer; can be empty. */
    public String message() {
        return message;
    }

    /** Returns the id of the service's call to the tenant, for support; can be empty. */
    public String requestId() {
        return requestId;
    }

    /** Returns the time of the result in milliseconds since 1970. */
    public long timestampMs() {
        return timestampMs;
    }

    /** Returns the tenant's new state of the entity as JSON text, unchanged; null when there is none. */
    public String imported() {
        return imported;
    }
}
