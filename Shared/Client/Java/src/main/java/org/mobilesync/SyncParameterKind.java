package org.mobilesync;

/** The place where a parameter's value is kept, which also decides for which devices it holds. */
public enum SyncParameterKind {
    /** In the client's memory, until sign-out or the end of the process. It takes precedence over the other kinds. */
    SESSION,
    /** In the local store, also after restarts. It takes precedence over SERVER. */
    CLIENT,
    /** On the server, for all devices of the user. It takes precedence over the default of the configuration. */
    SERVER
}
