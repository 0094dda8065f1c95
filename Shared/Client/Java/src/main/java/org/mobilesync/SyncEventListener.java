package org.mobilesync;

/** Receives the events of a client, other than data. The client calls it on its callback executor, in order. */
public interface SyncEventListener {
    /** The connection's status has changed. */
    default void onStatus(SyncStatus status) {}

    /** The gateway has accepted the user. The user's data follows. */
    default void onBound(String userId) {}

    /** The gateway has refused the user. The reason is a text for developers. */
    default void onBindRefused(String userId, String reason) {}

    /** The client has received the complete backlog of the last connect or bind; userId is null without a user. */
    default void onCaughtUp(String userId) {}

    /** The tenant reports the user session as invalid. Sign the user in again, then bind. */
    default void onSessionInvalid(String userId, String reason) {}

    /** The local store is full of unconfirmed oplogs. The client stores no more until the app confirms some (K8). */
    default void onStoreFull() {}

    /** The local store failed, for example on a full disk. Nothing of the step was acknowledged. */
    default void onStoreFailed(SyncException error) {}

    /**
     * The local store is an older copy of itself, for example from a backup. The service sends the data that the copy
     * lacks again, as {@link SyncOplog#isReplay()}.
     */
    default void onStoreRolledBack() {}

    /**
     * The service has refused the device id, because it belongs to another secret. The client has made this id and
     * connects with it. Backends must push data for the device to this id.
     */
    default void onRegisteredAnew(String deviceId) {}

    /**
     * The service has refused a parameter of the kind SERVER, or a filter's value has changed too often. The previous
     * value stays in force. The reason is a text for developers.
     */
    default void onParameterRefused(String reason) {}

    /** The gateway closed the connection with this code (DeviceProtocol.md, Close codes). */
    default void onClosed(long code, String reason) {}

    /** The client does not connect any more until {@link SyncClient#connect()}; the reason is the close code's. */
    default void onClosedForGood(long code, String reason) {}

    /** The connection was lost or could not be established. */
    default void onConnectionLost(String reason) {}

    /**
     * A listener of the app threw an exception or an Error. Its data stays unconfirmed and comes again (D14). A result
     * comes again after the next start.
     */
    default void onListenerFailed(Throwable error) {}
}
