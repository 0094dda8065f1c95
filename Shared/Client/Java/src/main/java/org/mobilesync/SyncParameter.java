package org.mobilesync;

/** A subscription parameter with its value. */
public final class SyncParameter {
    private final String bizType;
    private final String name;
    private final SyncParameterKind kind;
    private final SyncParameterValue value;
    private final boolean isPending;

    /** Creates a parameter. For the library's own use. */
    public SyncParameter(
        String bizType, String name, SyncParameterKind kind, SyncParameterValue value, boolean isPending) {
        this.bizType = bizType;
        this.name = name;
        this.kind = kind;
        this.value = value;
        this.isPending = isPending;
    }

    /** Returns the Sync ID whose filter uses the parameter. */
    public String bizType() {
        return bizType;
    }

    /** Returns the name of the parameter in the filter. */
    public String name() {
        return name;
    }

    /** Returns the place where the value is kept. */
    public SyncParameterKind kind() {
        return kind;
    }

    /** Returns the value. */
    public SyncParameterValue value() {
        return value;
    }

    /** Returns whether it is of the kind SERVER and the service has not confirmed that it stores the value. */
    public boolean isPending() {
        return isPending;
    }
}
